import fc from "fast-check";
import { expect, it } from "vitest";
import { intersect, Ordinals } from "./ordinals.ts";

const ordinal = fc.integer({ min: 0, max: 60 });
const changes = fc.array(fc.record({ add: fc.boolean(), ordinal }), { maxLength: 80 });

function listOf(numbers: Iterable<number>): Ordinals {
  const list = new Ordinals();
  for (const each of numbers) list.add(each);
  return list;
}

it("holds what was added and not deleted, ascending", () => {
  fc.assert(
    fc.property(changes, (all) => {
      const [list, set] = [new Ordinals(), new Set<number>()];
      for (const { add, ordinal: each } of all) {
        if (add) list.add(each);
        else list.delete(each);
        if (add) set.add(each);
        else set.delete(each);
        expect([...list.items]).toEqual([...set].sort((a, b) => a - b));
        expect(list.length).toBe(set.size);
      }
    }),
  );
});

it("meets in what every list holds", () => {
  fc.assert(
    fc.property(fc.array(fc.uniqueArray(ordinal), { minLength: 1, maxLength: 4 }), (lists) => {
      const [first = [], ...others] = lists;
      const both = first.filter((each) => others.every((other) => other.includes(each)));
      expect([...intersect(lists.map(listOf))]).toEqual(both.sort((a, b) => a - b));
    }),
  );
});

it("meets across lists of very different lengths", () => {
  const even = listOf(Array.from({ length: 5_000 }, (_, i) => 2 * i));
  expect([...intersect([even, listOf([0, 1, 5_000, 9_998, 9_999])])]).toEqual([0, 5_000, 9_998]);
});
