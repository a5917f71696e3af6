import fc from "fast-check";
import { expect, test } from "vitest";
import { WeightedLru } from "./weighted-lru.ts";

test("evicts the least recently used entry and stays within its weight", () => {
  const cache = new WeightedLru<string>(10);
  cache.set("a", "A", 4);
  cache.set("b", "B", 4);
  expect(cache.get("a")).toBe("A");
  cache.set("c", "C", 4);
  expect([cache.get("a"), cache.get("b"), cache.get("c")]).toEqual(["A", undefined, "C"]);
  cache.set("d", "D", 11);
  expect([cache.get("d"), cache.size]).toEqual([undefined, 2]);
  cache.set("a", "A2", 10);
  expect([cache.get("a"), cache.get("c")]).toEqual(["A2", undefined]);
});

test("returns only the last value set under a key, and only if it fits", () => {
  const insertion = fc.record({
    key: fc.constantFrom("a", "b", "c", "d"),
    weight: fc.integer({ min: 0, max: 12 }),
  });
  fc.assert(
    fc.property(fc.array(insertion), (puts) => {
      const cache = new WeightedLru<number>(10);
      const weights = new Map<string, number>();
      for (const [i, { key, weight }] of puts.entries()) {
        cache.set(key, i, weight);
        weights.set(key, weight);
        expect(cache.get(key)).toBe(weight > 10 ? undefined : i);
      }
      const heldKeys = [...weights].filter(([key]) => cache.get(key) !== undefined);
      expect(heldKeys.reduce((sum, [, weight]) => sum + weight, 0)).toBeLessThanOrEqual(10);
    }),
  );
});
