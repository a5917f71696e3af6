import { expect, test } from "vitest";
import { secretPlaces } from "./secret-places.ts";

/**
 * 16,384 keys. They share 128 places in `secretPlaces` without the shift before each multiplication, and 1,024 places in a
 * sum of their words.
 */
const chosen = Array.from({ length: 1 << 14 }, (_, n) => {
  const words = new Uint32Array(8);
  for (let bit = 0; bit < 7; bit++) {
    if (((n >> bit) & 1) === 0) continue;
    words[bit] = (words[bit] as number) ^ 0x80000000;
    words[bit + 1] = (words[bit + 1] as number) ^ 0x80010000;
  }
  words[7] = (words[7] as number) ^ ((n >> 7) << 7);
  return words;
});

test("keys of an attacker are spread like random keys", () => {
  const places = chosen.map(secretPlaces(8));
  // Among 2^14 random keys in 2^32 slots, about 0.03 collisions are expected.
  expect(new Set(places).size).toBeGreaterThan(chosen.length - 8);
  const tables = new Array<number>(256).fill(0);
  for (const place of places) tables[place >>> 24] = (tables[place >>> 24] ?? 0) + 1;
  // The mean is 64 keys in each table.
  expect(Math.max(...tables)).toBeLessThan(160);
  expect(Math.min(...tables)).toBeGreaterThan(10);
});

test("a key has one slot, and another slot in another process or table", () => {
  const [one, other] = [secretPlaces(8), secretPlaces(8)];
  expect(chosen.map(one)).toEqual(chosen.map(one));
  expect(chosen.filter((key) => one(key) === other(key)).length).toBeLessThan(8);
});
