import fc from "fast-check";
import { expect, test } from "vitest";
import { FairQueue } from "./fair-queue.ts";

function taken<Item>(queue: FairQueue<Item>): Item[] {
  const items: Item[] = [];
  for (let item = queue.shift(); item !== undefined; item = queue.shift()) items.push(item);
  return items;
}

test("the queue gives one item of each caller in turn", () => {
  const queue = new FairQueue<string>();
  for (const item of ["a1", "a2", "a3", "b1", "c1", "b2"]) queue.push(item, item[0] ?? "");
  expect(taken(queue)).toEqual(["a1", "b1", "c1", "a2", "b2", "a3"]);
});

test("a later caller waits behind one item of each other caller", () => {
  const queue = new FairQueue<string>();
  for (let i = 0; i < 1000; i++) queue.push(`greedy ${i}`, "greedy");
  expect(queue.shift()).toBe("greedy 0");
  queue.push("modest", "modest");
  expect([queue.shift(), queue.shift()]).toEqual(["greedy 1", "modest"]);
});

test("each caller's items keep their order, and no item is lost or repeated", () => {
  const step = fc.oneof(fc.record({ caller: fc.integer({ min: 0, max: 4 }) }), fc.constant("shift" as const));
  fc.assert(
    fc.property(fc.array(step, { maxLength: 2000 }), (steps) => {
      const queue = new FairQueue<{ caller: number; order: number }>();
      const got: { caller: number; order: number }[] = [];
      let pushed = 0;
      for (const each of steps) {
        if (each !== "shift") queue.push({ caller: each.caller, order: pushed++ }, String(each.caller));
        else {
          const item = queue.shift();
          if (item !== undefined) got.push(item);
        }
        expect(queue.length).toBe(pushed - got.length);
      }
      got.push(...taken(queue));
      expect(got.length).toBe(pushed);
      for (let caller = 0; caller <= 4; caller++) {
        const orders = got.filter((item) => item.caller === caller).map(({ order }) => order);
        expect(orders).toEqual(orders.toSorted((a, b) => a - b));
      }
    }),
  );
});
