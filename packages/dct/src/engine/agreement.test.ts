import fc from "fast-check";
import { expect, test } from "vitest";
import type { CryptoEngine } from "../engine.ts";
import { nativeEngine } from "./native.ts";
import { portableEngine } from "./portable.ts";
import { EngineError, selfTest } from "./self-test.ts";

const bytes = (length: number) => fc.uint8Array({ minLength: length, maxLength: length });

test("property: both engines derive equal secrets, with either key, and equal codes", () => {
  fc.assert(
    fc.property(bytes(32), bytes(32), fc.uint8Array({ maxLength: 300 }), (a, b, data) => {
      const shared = nativeEngine.agree(a, portableEngine.publicKey(b));
      expect(shared).toHaveLength(32);
      expect(portableEngine.agree(a, nativeEngine.publicKey(b))).toEqual(shared);
      expect(portableEngine.agree(b, nativeEngine.publicKey(a))).toEqual(shared);
      expect(portableEngine.mac(a, data)).toEqual(nativeEngine.mac(a, data));
    }),
    { numRuns: 20 },
  );
});

test("property: a junk key gives both engines the same result", () => {
  fc.assert(
    fc.property(bytes(32), bytes(32), (seed, junk) => {
      expect(portableEngine.agree(seed, junk)).toEqual(nativeEngine.agree(seed, junk));
    }),
    { numRuns: 30 },
  );
});

test.each([nativeEngine, portableEngine])(
  "a key or a seed of another length is refused ($name)",
  (engine) => {
    const seed = new Uint8Array(32).fill(1);
    for (const length of [0, 31, 33, 64]) {
      expect(engine.agree(seed, new Uint8Array(length).fill(9))).toBeUndefined();
      expect(() => engine.agree(new Uint8Array(length), engine.publicKey(seed))).toThrow(RangeError);
    }
  },
);

test.each<[string, Partial<CryptoEngine>]>([
  ["a code that leaves out the key", { mac: (_, data) => nativeEngine.blake2b256(data) }],
  ["an agreement that ignores the other key", { agree: (seed) => seed }],
  ["a key of small order", { agree: (seed, key) => nativeEngine.agree(seed, key) ?? new Uint8Array(32) }],
])("K5 the self test detects %s", (_, wrong) => {
  expect(() => selfTest({ ...nativeEngine, ...wrong })).toThrow(EngineError);
});
