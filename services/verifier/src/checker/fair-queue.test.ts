import fc from "fast-check";
import { expect, test } from "vitest";
import { FairQueue } from "./fair-queue.ts";

const all = () => true;
const drain = (queue: FairQueue<string>) => {
  const taken: string[] = [];
  for (let item = queue.take(all); item !== undefined; item = queue.take(all)) taken.push(item);
  return taken;
};

test("everybody is served in turn, and each in his own order", () => {
  const queue = new FairQueue<string>();
  for (const item of ["a1", "a2", "a3", "b1", "c1", "c2"]) queue.push(item.slice(0, 1), item);
  expect(drain(queue)).toEqual(["a1", "b1", "c1", "a2", "c2", "a3"]);
  expect(queue.size).toBe(0);
});

test("who may not be served now is passed over, and keeps his turn", () => {
  const queue = new FairQueue<string>();
  for (const item of ["a1", "b1", "a2"]) queue.push(item.slice(0, 1), item);
  expect(queue.take((owner) => owner !== "a")).toBe("b1");
  expect(queue.take((owner) => owner !== "a")).toBeUndefined();
  expect(drain(queue)).toEqual(["a1", "a2"]);
});

test("nobody waits for more than one of each other, nothing is lost, sizes are right", () => {
  const pushes = fc.array(fc.constantFrom("a", "b", "c", "d"), { maxLength: 60 });
  fc.assert(
    fc.property(pushes, (owners) => {
      const queue = new FairQueue<string>();
      for (const [i, owner] of owners.entries()) queue.push(owner, `${owner}${i}`);
      expect(queue.size).toBe(owners.length);
      const served = drain(queue);
      expect([...served].sort()).toEqual(owners.map((owner, i) => `${owner}${i}`).sort());
      const left = new Map<string, number>();
      for (const owner of owners) left.set(owner, (left.get(owner) ?? 0) + 1);
      for (let i = 1; i < served.length; i++) {
        const [before, now] = [served[i - 1]?.[0] ?? "", served[i]?.[0] ?? ""];
        left.set(before, (left.get(before) ?? 0) - 1);
        // Twice in a row only when nobody else waits.
        if (before === now) {
          expect([...left].filter(([owner, count]) => owner !== now && count > 0)).toEqual([]);
        }
      }
    }),
  );
});

test("the greediest is found, and what it asked for last goes first", () => {
  const queue = new FairQueue<string>();
  for (const item of ["a1", "b1", "b2", "b3", "a2"]) queue.push(item.slice(0, 1), item);
  expect(queue.greediest()).toEqual({ owner: "b", size: 3 });
  expect(queue.dropLast("b")).toBe("b3");
  expect(queue.dropLast("nobody")).toBeUndefined();
  expect(queue.remove((item) => item.endsWith("1"))).toEqual(["a1", "b1"]);
  expect([queue.size, queue.sizeOf("a"), queue.sizeOf("b")]).toEqual([2, 1, 1]);
  expect(drain(queue)).toEqual(["a2", "b2"]);
});
