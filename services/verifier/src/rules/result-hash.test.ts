import { createHash } from "node:crypto";
import { expect, test } from "vitest";
import { hashMatches, resultHash } from "./result-hash.ts";

const sha256 = (data: Uint8Array) => new Uint8Array(createHash("sha256").update(data).digest());
const hash = resultHash(sha256, { b: 1, a: [null] });

test("hashes the canonical form", () => {
  expect(hash).toBe(`sha256:${createHash("sha256").update('{"a":[null],"b":1}').digest("hex")}`);
  expect(resultHash(sha256, { a: [null], b: 1.0 })).toBe(hash);
});

test.each<[given: string, matches: boolean]>([
  [hash, true],
  [hash.slice(7), true],
  [hash.slice(7, 19), true],
  [hash.toUpperCase(), true],
  [hash.slice(0, 7 + 12), true],
  [hash.slice(7, 18), false],
  [`${hash}0`, false],
  [`${hash.slice(7, 18)}${hash[18] === "0" ? "1" : "0"}`, false],
  ["", false],
  ["sha256:", false],
  ["g".repeat(12), false],
])("compares %s", (sentHash, matches) => {
  expect(hashMatches(hash, sentHash)).toBe(matches);
});
