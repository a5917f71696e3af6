/** 32 bits for a key of some words: the same key has the same ones as long as the table lives. */
export type Place = (key: Uint32Array) => number;

/**
 * Where keys of so many words belong in a table, such that nobody outside foretells it: who can choose keys could pile
 * them up otherwise, and make every search a long one. A shift comes before each secret factor, since a factor by itself
 * passes a difference in the highest bit on as it is, and the next word could take it back.
 */
export function secretPlaces(words: number): Place {
  const secret = crypto.getRandomValues(new Uint32Array(words));
  const factors = crypto.getRandomValues(new Uint32Array(words)).map((factor) => factor | 1);
  return (key) => {
    let sum = 0;
    for (let i = 0; i < words; i++) {
      sum ^= (key[i] as number) ^ (secret[i] as number);
      sum = Math.imul(sum ^ (sum >>> 16), factors[i] as number);
      sum ^= sum >>> 15;
    }
    // A poor factor in the last step would leave the high bits alike.
    sum = Math.imul(sum ^ (sum >>> 16), 0x85ebca6b);
    sum = Math.imul(sum ^ (sum >>> 13), 0xc2b2ae35);
    return (sum ^ (sum >>> 16)) >>> 0;
  };
}
