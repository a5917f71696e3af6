import { createHash } from "node:crypto";
import type { JsonValue } from "@bufbuild/protobuf";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { isOfVersion, versionDigest, versionHash } from "./version-hash.ts";

const sha256 = (bytes: Uint8Array) => createHash("sha256").update(bytes).digest("hex");
const digestOf = (input: JsonValue, output: JsonValue) => versionDigest({ input, output }, sha256);

const text = { type: "object", properties: { text: { type: "string" } } };
const score = { type: "object", properties: { score: { type: "number" } } };

describe("versionDigest", () => {
  // The conformance vectors that NEKTE's libraries share.
  it.each<[string, JsonValue, JsonValue, string]>([
    ["text to score", text, score, "f53655e974b05aa5"],
    [
      "several fields",
      { type: "object", properties: { city: { type: "string" }, units: { type: "string" } } },
      { type: "object", properties: { temp: { type: "number" }, condition: { type: "string" } } },
      "a190be3e19561427",
    ],
    [
      "no properties",
      { type: "object", properties: {} },
      { type: "object", properties: {} },
      "815997d90d084a5b",
    ],
    ["keys out of order", { b: 2, a: 1 }, { z: true, m: false }, "f2cbb7e3e5b502a8"],
    [
      "nesting and an array",
      { nested: { z: 1, a: 2, m: { c: 3, b: 4 } } },
      { result: [1, 2, 3] },
      "e950f221c8cbcf6e",
    ],
    ["nulls", { a: null, b: 1 }, { x: null }, "982336735894ad8e"],
    ["booleans", { flag: true }, { ok: false }, "e6e6b6eca51b3006"],
  ])("%s", (_, input, output, expected) => {
    const digest = digestOf(input, output);
    expect(digest).toHaveLength(64);
    expect(versionHash(digest, 16)).toBe(expected);
    expect(versionHash(digest, 8)).toBe(expected.slice(0, 8));
  });

  const schemas = fc.jsonValue({ noUnicodeString: false, maxDepth: 4 }) as fc.Arbitrary<JsonValue>;

  it("ignores the order of members", () => {
    fc.assert(
      fc.property(schemas, schemas, (input, output) => {
        expect(digestOf(reversed(input), reversed(output))).toBe(digestOf(input, output));
      }),
    );
  });

  it("changes with either schema, and distinguishes input from output", () => {
    fc.assert(
      fc.property(schemas, schemas, schemas, (input, output, other) => {
        const same = JSON.stringify(sorted(input)) === JSON.stringify(sorted(other));
        expect(digestOf(other, output) === digestOf(input, output)).toBe(same);
        expect(digestOf(output, other) === digestOf(output, input)).toBe(same);
        expect(digestOf(input, other) === digestOf(other, input)).toBe(same);
      }),
    );
  });
});

describe("isOfVersion", () => {
  const digest = digestOf(text, score);

  it.each<[string, string, boolean]>([
    ["8 digits", digest.slice(0, 8), true],
    ["13 digits", digest.slice(0, 13), true],
    ["all digits", digest, true],
    ["upper case", digest.slice(0, 16).toUpperCase(), true],
    ["7 digits", digest.slice(0, 7), false],
    ["none", "", false],
    ["more digits than there are", `${digest}0`, false],
    ["digits of the middle", digest.slice(1, 12), false],
    ["a wrong last digit", digest.slice(0, 8) + (digest[8] === "0" ? "1" : "0"), false],
    ["no digits", "e5f6g7h8", false],
    ["white space behind", `${digest.slice(0, 8)}\n`, false],
  ])("%s", (_, hash, expected) => {
    expect(isOfVersion(hash, digest)).toBe(expected);
  });
});

/** Reverses the order of the members of every object. */
function reversed(value: JsonValue): JsonValue {
  return rebuilt(value, (keys) => keys.reverse());
}

function sorted(value: JsonValue): JsonValue {
  return rebuilt(value, (keys) => keys.sort());
}

function rebuilt(value: JsonValue, arrange: (keys: string[]) => string[]): JsonValue {
  if (Array.isArray(value)) return value.map((item) => rebuilt(item, arrange));
  if (typeof value !== "object" || value === null) return value;
  const copy: Record<string, JsonValue> = {};
  for (const key of arrange(Object.keys(value))) {
    const member = rebuilt(value[key] as JsonValue, arrange);
    // Defines the member, because an assignment to __proto__ would set the prototype.
    Object.defineProperty(copy, key, { value: member, enumerable: true, writable: true, configurable: true });
  }
  return copy;
}
