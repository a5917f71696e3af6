import canonicalize from "canonicalize";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { CanonicalError, canonicalBytes, canonicalJson, MAX_CANONICAL_DEPTH } from "./canonical.ts";

describe("canonicalJson", () => {
  test.each<[string, unknown, string]>([
    ["members in UTF-16 order", { b: 1, a: 2, "\u20ac": 3, "\r": 4 }, '{"\\r":4,"a":2,"b":1,"\u20ac":3}'],
    [
      "members in order within members out of order",
      { b: { c: 1, d: 2 }, a: 3 },
      '{"a":3,"b":{"c":1,"d":2}}',
    ],
    ["members out of order within members in order", { a: [{ d: 1, c: 2 }] }, '{"a":[{"c":2,"d":1}]}'],
    ["numbers as names in UTF-16 order", { 9: 1, 10: 2, 1: 3 }, '{"1":3,"10":2,"9":1}'],
    ["an empty name first", { "": 1, a: 2 }, '{"":1,"a":2}'],
    ["numbers as ECMAScript writes them", [1e30, 4.5, 2e-3, 1e-27, -0], "[1e+30,4.5,0.002,1e-27,0]"],
    ["shortest escapes", '\u000f\n/\u20ac"\\', '"\\u000f\\n/\u20ac\\"\\\\"'],
    ["an own __proto__ member", JSON.parse('{"__proto__":{"x":1},"a":2}'), '{"__proto__":{"x":1},"a":2}'],
    ["a member named toJSON", { toJSON: "x" }, '{"toJSON":"x"}'],
    ["an object without a prototype", Object.assign(Object.create(null), { a: null }), '{"a":null}'],
    ["the same object twice, which is no cycle", (() => [shared, shared])(), '[{"k":[]},{"k":[]}]'],
    ["scalars", true, "true"],
  ])("writes %s", (_, value, text) => {
    expect(canonicalJson(value)).toBe(text);
  });

  test.each<[string, unknown, string]>([
    ["undefined", undefined, ""],
    ["an undefined member", { a: { b: undefined } }, "a.b"],
    ["a function", { a: [() => 1] }, "a[0]"],
    ["a symbol", [Symbol("s")], "[0]"],
    ["a bigint", { a: 1n }, "a"],
    ["NaN", { a: Number.NaN }, "a"],
    ["infinity", [0, Number.POSITIVE_INFINITY], "[1]"],
    ["a lone surrogate", { a: "\ud800" }, "a"],
    ["a lone surrogate in a name", { "\udc00": 1 }, "\ufffd"],
    ["a sparse array", { a: new Array(2) }, "a[0]"],
    ["an array with a named member", Object.assign([1], { x: 1 }), ""],
    ["a Date", { at: new Date(0) }, "at"],
    ["a Map", new Map(), ""],
    ["a boxed string", [Object("x")], "[0]"],
    ["bytes", { b: new Uint8Array(1) }, "b"],
    ["an instance", new (class Point {})(), ""],
    ["toJSON as a method", { toJSON: () => 1 }, "toJSON"],
    ["an accessor", Object.defineProperty({}, "a", { get: () => 1, enumerable: true }), "a"],
    ["a cycle", cyclic(), "self"],
    [
      "nesting over the limit",
      nested(MAX_CANONICAL_DEPTH + 1),
      Array(MAX_CANONICAL_DEPTH).fill("[0]").join(""),
    ],
  ])("refuses %s", (_, value, path) => {
    const refused = catchError(() => canonicalJson(value));
    expect(refused).toBeInstanceOf(CanonicalError);
    expect((refused as CanonicalError).path).toBe(path.slice(0, 128));
  });

  test("accepts nesting up to the limit", () => {
    expect(canonicalJson(nested(3), 3)).toBe("[[[]]]");
    expect(() => canonicalJson(nested(4), 3)).toThrow(CanonicalError);
  });

  test("limits the path that it reports", () => {
    const refused = catchError(() => canonicalJson({ ["x".repeat(5000)]: undefined }));
    expect((refused as CanonicalError).path).toHaveLength(128);
  });

  test("property: a parsed text has the same canonical form, for any order of members", () => {
    fc.assert(
      fc.property(fc.jsonValue({ maxDepth: 5 }), (value) => {
        const text = canonicalJson(value);
        expect(canonicalJson(JSON.parse(text))).toBe(text);
        expect(canonicalJson(reversed(JSON.parse(JSON.stringify(value))))).toBe(text);
      }),
    );
  });

  test("property: the text is that of the library, for members in any order", () => {
    fc.assert(
      fc.property(fc.jsonValue({ maxDepth: 5 }), (value) => {
        expect(canonicalJson(value)).toBe(canonicalize(value));
        const ordered = JSON.parse(canonicalJson(value));
        expect(canonicalJson(ordered)).toBe(canonicalize(ordered));
      }),
    );
  });

  test("canonicalBytes is the UTF-8 form", () => {
    expect([...canonicalBytes("\u20ac")]).toEqual([0x22, 0xe2, 0x82, 0xac, 0x22]);
  });
});

const shared = { k: [] };

function nested(depth: number): unknown {
  let value: unknown[] = [];
  for (let i = 1; i < depth; i++) value = [value];
  return value;
}

function cyclic(): unknown {
  const value: Record<string, unknown> = {};
  value.self = value;
  return value;
}

function reversed(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(reversed);
  if (value === null || typeof value !== "object") return value;
  const entries = Object.entries(value).reverse();
  return Object.fromEntries(entries.map(([key, member]) => [key, reversed(member)]));
}

function catchError(run: () => unknown): unknown {
  try {
    run();
  } catch (error) {
    return error;
  }
  return undefined;
}
