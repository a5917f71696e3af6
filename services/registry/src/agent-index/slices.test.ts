import fc from "fast-check";
import { expect, it } from "vitest";
import { Slices } from "./slices.ts";

const read = (slices: Slices, ordinal: number) => {
  const start = slices.start(ordinal);
  return [...slices.items.subarray(start, start + slices.length(ordinal))];
};

it("keeps for each ordinal what was set last", () => {
  const set = fc.tuple(fc.nat({ max: 5 }), fc.array(fc.nat(), { maxLength: 6 }));
  fc.assert(
    fc.property(fc.array(set), (sets) => {
      const [slices, expected] = [new Slices(), new Map<number, number[]>()];
      for (const [wanted, numbers] of sets) {
        const ordinal = Math.min(wanted, expected.size);
        slices.set(ordinal, numbers);
        expected.set(ordinal, numbers);
      }
      for (const [ordinal, numbers] of expected) expect(read(slices, ordinal)).toEqual(numbers);
    }),
  );
});

it("does not grow with what is set again and again", () => {
  const slices = new Slices();
  const numbers = Array.from({ length: 1_000 }, (_, i) => i);
  for (let i = 0; i < 1_000; i++) slices.set(i % 10, numbers);
  expect(read(slices, 7)).toEqual(numbers);
  expect(slices.items.length).toBeLessThan(200_000);
});
