import { randomWords } from "@depute/core";
/** Returns 32 bits for a key: always the same bits for the same key. */
export type Place = (key: Uint32Array) => number;

/**
 * Returns a function that computes the slot of a key with this number of words. Outsiders cannot predict the slots.
 * If they could, they could choose keys that collide, and every search would be long. A shift precedes each
 * multiplication by a secret factor. Multiplication alone preserves a difference in the highest bit, and the next
 * word could cancel that difference.
 */
export function secretPlaces(words: number): Place {
  const secret = randomWords(words);
  const factors = randomWords(words).map((factor) => factor | 1);
  return (key) => {
    let sum = 0;
    for (let i = 0; i < words; i++) {
      sum ^= (key[i] as number) ^ (secret[i] as number);
      sum = Math.imul(sum ^ (sum >>> 16), factors[i] as number);
      sum ^= sum >>> 15;
    }
    // The last step multiplies by fixed factors. With a weak random factor, the high bits of the results would not
    // differ.
    sum = Math.imul(sum ^ (sum >>> 16), 0x85ebca6b);
    sum = Math.imul(sum ^ (sum >>> 13), 0xc2b2ae35);
    return (sum ^ (sum >>> 16)) >>> 0;
  };
}
