import { encodeBase64Url } from "@depute/core";
import fc from "fast-check";
import { expect, it } from "vitest";
import { RevokedIds } from "./revoked-ids.ts";

const id = fc.uint8Array({ minLength: 32, maxLength: 32 }).map(encodeBase64Url);

it("has what was added and nothing else", () => {
  fc.assert(
    fc.property(fc.array(id, { maxLength: 200 }), fc.array(id, { maxLength: 50 }), (added, others) => {
      const ids = new RevokedIds();
      for (const one of [...added, ...added]) ids.add(one);
      expect(ids.size).toBe(new Set(added).size);
      for (const one of added) expect(ids.has(one)).toBe(true);
      for (const one of others) expect(ids.has(one)).toBe(added.includes(one));
    }),
    { numRuns: 50 },
  );
});

it("grows, and stays below 64 bytes an id", () => {
  const ids = new RevokedIds();
  const bytes = new Uint8Array(32);
  const nth = (n: number) => {
    new DataView(bytes.buffer).setUint32(0, n);
    return encodeBase64Url(bytes);
  };
  const count = 50_000;
  for (let n = 0; n < count; n++) ids.add(nth(n));
  expect(ids.size).toBe(count);
  for (let n = 0; n < count; n += 97) expect(ids.has(nth(n))).toBe(true);
  expect(ids.has(nth(count))).toBe(false);
  expect(ids.bytes / count).toBeLessThan(64);
});

it.each(["", "short", "A".repeat(42), `${"A".repeat(42)}B`, "A".repeat(86), "*".repeat(43)])(
  "%j is no id: it is never in the set, and adding it is an error",
  (text) => {
    const ids = new RevokedIds();
    ids.add("A".repeat(43));
    expect(ids.has(text)).toBe(false);
    expect(() => ids.add(text)).toThrow(RangeError);
  },
);
