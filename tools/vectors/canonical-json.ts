import { canonicalBytes, canonicalJson, encodeHex, parseStrictJson } from "@depute/core";
import { sha256Hex } from "@depute/core/sha256";
import { isOfVersion, versionDigest, versionHash } from "@depute/registry/version-hash";
import { engine, type VectorCase, type VectorFile } from "./shared.ts";

/** JSON texts with a canonical form. */
const TEXTS: readonly (readonly [name: string, json: string])[] = [
  ["an empty object", " { } "],
  [
    "members in the order of UTF-16 code units",
    '{"b":1,"a":2,"\u20ac":3,"\\r":4,"\\ufb33":5,"\\ud83d\\ude00":6}',
  ],
  ["an upper-case name before a lower-case one", '{"aa":1,"a":2,"B":3,"":4}'],
  ["nested objects", '{"z":{"b":[{"y":1,"x":2}],"a":null},"a":true}'],
  ["the order of an array", "[3, 1, 2, [], {}]"],
  ["shortest escapes", '"\\u000f\\n\\/\\u20ac\\"\\\\\\b\\f\\t\\u007f\\u2028"'],
  ["a character outside the basic plane", '"\\ud83d\\ude00"'],
  ["names that need escapes", '{"\\n":1,"\\"":2,"\\\\":3}'],
  ["a member __proto__", '{"__proto__":{"x":1},"a":2}'],
  ["integers", "[0, -0, 1, -1, 10, 9007199254740991, -9007199254740991]"],
  ["an integer above 2^53 as the nearest double", "[9007199254740993, 12345678901234567890]"],
  ["fractions", "[4.50, 2e-3, 0.1, 100.0, 1.0E0, 0.000001, 0.0000001]"],
  [
    "exponents",
    "[1e30, 1e21, 1e20, 123456789012345680000, 1e-27, 1.7976931348623157e308, 5e-324, 333333333.33333329]",
  ],
  ["a fraction below the smallest double", "[1e-400, -1e-400]"],
  ["literals", "[true, false, null]"],
  ["nesting of 64 levels", "[".repeat(64) + "]".repeat(64)],
];

/** Texts without a canonical form. */
const FAULTS: readonly (readonly [name: string, json: string])[] = [
  ["a repeated member", '{"a":1,"a":1}'],
  ["a repeated member that is spelled with an escape", '{"a":1,"\\u0061":2}'],
  ["nesting of 65 levels", "[".repeat(65) + "]".repeat(65)],
  ["a lone surrogate in a text", '["\\ud800"]'],
  ["a lone surrogate in a name", '{"\\udc00":1}'],
  ["a number beyond the doubles", "[1e400]"],
  ["NaN", "[NaN]"],
  ["a trailing comma", "[1,]"],
  ["a leading zero", "[01]"],
  ["text after the value", "{} {}"],
  ["a comment", "{}//"],
  ["an empty text", ""],
];

const SCHEMAS: readonly (readonly [name: string, input: unknown, output: unknown])[] = [
  [
    "text to score",
    { type: "object", properties: { text: { type: "string" } } },
    { type: "object", properties: { score: { type: "number" } } },
  ],
  ["members out of order", { b: 2, a: 1 }, { z: true, m: false }],
  ["nesting and an array", { nested: { z: 1, a: 2, m: { c: 3, b: 4 } } }, { result: [1, 2, 3] }],
  ["null and booleans", { a: null, b: 1 }, true],
];

export function canonicalJsonVectors(): VectorFile {
  return {
    specification: "canonical-json.md",
    cases: [...TEXTS.map(written), ...FAULTS.map(refused), ...SCHEMAS.map(hashed), ...namedVersions()],
  };
}

function written([name, json]: readonly [string, string]): VectorCase {
  const value = parseStrictJson(json);
  const bytes = canonicalBytes(value);
  const expected = {
    canonical: canonicalJson(value),
    utf8Hex: encodeHex(bytes),
    sha256Hex: sha256Hex(bytes),
    blake2b256Hex: encodeHex(engine.blake2b256(bytes)),
  };
  return { name, operation: "canonicalize", input: { json }, expected };
}

function refused([name, json]: readonly [string, string]): VectorCase {
  return { name, operation: "canonicalize", input: { json }, refusal: "no_canonical_form" };
}

function hashed([name, input, output]: readonly [string, unknown, unknown]): VectorCase {
  const schemas = { input, output } as Parameters<typeof versionDigest>[0];
  const digest = versionDigest(schemas, sha256Hex);
  const expected = { digestHex: digest, hash8: versionHash(digest, 8), hash16: versionHash(digest, 16) };
  return { name: `version hash: ${name}`, operation: "version-hash", input: { input, output }, expected };
}

function namedVersions(): VectorCase[] {
  const [, input, output] = SCHEMAS[0] as (typeof SCHEMAS)[0];
  const digestHex = versionDigest({ input, output } as Parameters<typeof versionDigest>[0], sha256Hex);
  const hashes: readonly (readonly [string, string])[] = [
    ["8 digits", digestHex.slice(0, 8)],
    ["13 digits in upper case", digestHex.slice(0, 13).toUpperCase()],
    ["all 64 digits", digestHex],
    ["7 digits", digestHex.slice(0, 7)],
    ["digits from the middle", digestHex.slice(1, 12)],
    ["letters that are not digits", `${digestHex.slice(0, 8)}xyz`],
  ];
  return hashes.map(([name, hash]) => ({
    name: `a hash of a version: ${name}`,
    operation: "names-version",
    input: { hash, digestHex },
    expected: { names: isOfVersion(hash, digestHex) },
  }));
}
