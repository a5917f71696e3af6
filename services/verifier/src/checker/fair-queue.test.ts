import fc from "fast-check";
import { expect, test } from "vitest";
import { FairQueue } from "./fair-queue.ts";

const all = () => true;
const drain = (queue: FairQueue<string>) => {
  const order: string[] = [];
  for (let item = queue.take(all); item !== undefined; item = queue.take(all)) order.push(item);
  return order;
};

test("serves owners in turn, and each owner's items in order", () => {
  const queue = new FairQueue<string>();
  for (const item of ["a1", "a2", "a3", "b1", "c1", "c2"]) queue.push(item.slice(0, 1), item);
  expect(drain(queue)).toEqual(["a1", "b1", "c1", "a2", "c2", "a3"]);
  expect(queue.size).toBe(0);
});

test("skips an owner that may not be served, without losing its turn", () => {
  const queue = new FairQueue<string>();
  for (const item of ["a1", "b1", "a2"]) queue.push(item.slice(0, 1), item);
  expect(queue.take((owner) => owner !== "a")).toBe("b1");
  expect(queue.take((owner) => owner !== "a")).toBeUndefined();
  expect(drain(queue)).toEqual(["a1", "a2"]);
});

test("an item waits for at most one item of each other owner, none is lost, and sizes are exact", () => {
  const pushes = fc.array(fc.constantFrom("a", "b", "c", "d"), { maxLength: 60 });
  fc.assert(
    fc.property(pushes, (owners) => {
      const queue = new FairQueue<string>();
      for (const [i, owner] of owners.entries()) queue.push(owner, `${owner}${i}`);
      expect(queue.size).toBe(owners.length);
      const served = drain(queue);
      expect([...served].sort()).toEqual(owners.map((owner, i) => `${owner}${i}`).sort());
      const remaining = new Map<string, number>();
      for (const owner of owners) remaining.set(owner, (remaining.get(owner) ?? 0) + 1);
      for (let i = 1; i < served.length; i++) {
        const [before, now] = [served[i - 1]?.[0] ?? "", served[i]?.[0] ?? ""];
        remaining.set(before, (remaining.get(before) ?? 0) - 1);
        // `take` may serve an owner twice in a row only if no other owner has waiting items.
        if (before === now) {
          expect([...remaining].filter(([owner, count]) => owner !== now && count > 0)).toEqual([]);
        }
      }
    }),
  );
});

test("finds the owner with the most items and drops its newest item", () => {
  const queue = new FairQueue<string>();
  for (const item of ["a1", "b1", "b2", "b3", "a2"]) queue.push(item.slice(0, 1), item);
  expect(queue.largestOwner()).toEqual({ owner: "b", size: 3 });
  expect(queue.dropLast("b")).toBe("b3");
  expect(queue.dropLast("nobody")).toBeUndefined();
  expect(queue.remove((item) => item.endsWith("1"))).toEqual(["a1", "b1"]);
  expect([queue.size, queue.sizeOf("a"), queue.sizeOf("b")]).toEqual([2, 1, 1]);
  expect(drain(queue)).toEqual(["a2", "b2"]);
});
