import fc from "fast-check";
import { expect, it } from "vitest";
import { OrderedList } from "./ordered-list.ts";

const down = (a: number, b: number) => b - a;

it("keeps its items in its order, whatever comes and goes, and knows their neighbours", () => {
  const change = fc.record({ add: fc.boolean(), item: fc.nat({ max: 3_000 }) });
  fc.assert(
    fc.property(fc.array(change, { maxLength: 2_000, size: "max" }), (changes) => {
      const [list, items] = [new OrderedList(down), new Set<number>()];
      for (const { add, item } of changes) {
        if (add && !items.has(item)) {
          const [before, after] = [
            [...items].filter((each) => each > item),
            [...items].filter((each) => each < item),
          ];
          expect(list.add(item)).toEqual({
            before: before.length === 0 ? undefined : Math.min(...before),
            after: after.length === 0 ? undefined : Math.max(...after),
          });
          items.add(item);
        } else if (!add) {
          list.delete(item);
          items.delete(item);
        }
      }
      expect([...list]).toEqual([...items].sort(down));
      expect(list.isEmpty).toBe(items.size === 0);
    }),
    { numRuns: 20 },
  );
});

it("walks forward to what is asked for", () => {
  const list = new OrderedList((a, b) => a - b);
  for (let i = 0; i < 5_000; i++) list.add((i * 7919) % 5_000);
  const seek = list.cursor();
  for (const wanted of [0, 1, 2, 700, 701, 4_998, 4_999]) {
    expect(seek((item) => item < wanted)).toBe(wanted);
    expect(seek((item) => item < wanted)).toBe(wanted);
  }
  expect(seek((item) => item < 5_000)).toBeUndefined();
});
