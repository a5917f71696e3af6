import fc from "fast-check";
import { describe, expect, it, test } from "vitest";
import { isObject, MAX_JSON_DEPTH, MAX_JSON_VALUES, parseStrictJson, scanJson } from "./json.ts";

it.each([
  [{}, true],
  [{ a: 1 }, true],
  [Object.create(null), true],
  [null, false],
  [[], false],
  ["{}", false],
  [undefined, false],
])("isObject(%j) is %j", (value, expected) => {
  expect(isObject(value)).toBe(expected);
});

/** Counts the values of parsed JSON, and the names of members. */
function valuesOf(value: unknown): number {
  if (typeof value !== "object" || value === null) return 1;
  const names = Array.isArray(value) ? 0 : Object.keys(value).length;
  return Object.values(value).reduce((count: number, inner) => count + valuesOf(inner), 1 + names);
}

function depthOf(value: unknown): number {
  if (typeof value !== "object" || value === null) return 0;
  return 1 + Math.max(0, ...Object.values(value).map(depthOf));
}

/** Arbitrary JSON values as texts, with and without spaces. */
const texts = fc
  .tuple(fc.jsonValue({ maxDepth: 6 }), fc.constantFrom(undefined, 1, "\t"))
  .map(([value, space]) => ({ value, text: JSON.stringify(value, undefined, space) }));

test("a text passes exactly at its own number of values and its own depth", () => {
  fc.assert(
    fc.property(texts, ({ value, text }) => {
      const [maxValues, maxDepth] = [valuesOf(value), depthOf(value)];
      expect(scanJson(text, { maxValues, maxDepth })).toBeUndefined();
      expect(scanJson(text, { maxValues: maxValues - 1 })).toEqual({
        kind: "too_many_values",
        max: maxValues - 1,
      });
      if (maxDepth > 0) expect(scanJson(text, { maxDepth: maxDepth - 1 })?.kind).toBe("too_deep");
    }),
  );
});

test("a repeated member is found in any object, for any spelling", () => {
  const name = fc.string({ maxLength: 5 });
  const around = fc.constantFrom<(inner: string) => string>(
    (inner) => inner,
    (inner) => `[1, ${inner}]`,
    (inner) => `{"x": {"y": [${inner}, "x"]}}`,
  );
  const spelt = fc.constantFrom<(name: string) => string>(JSON.stringify, (name) => {
    const units = [...Array(name.length).keys()].map((i) => name.charCodeAt(i).toString(16).padStart(4, "0"));
    return `"${units.map((unit) => `\\u${unit}`).join("")}"`;
  });
  fc.assert(
    fc.property(name, around, spelt, spelt, (name, wrap, first, second) => {
      const text = wrap(`{${first(name)}: {"a": 1}, "${name.length}other": [], ${second(name)} : 2}`);
      expect(() => JSON.parse(text)).not.toThrow();
      expect(scanJson(text)).toEqual({ kind: "duplicate_member", name });
      expect(() => parseStrictJson(text)).toThrow(SyntaxError);
    }),
  );
});

test.each([
  ["neighbouring objects", '[{"a":1},{"a":2}]'],
  ["a nested object", '{"a":{"a":{"a":1}}}'],
  ["strings that are not names", '{"a":"b","b":"a","c":["a","a"]}'],
  ["names with characters of JSON's syntax", '{"{\\"a\\":1,":1,"a":"{\\"a\\":1,\\"a\\":2}"}'],
])("the same name may stand in %s", (_, text) => {
  expect(scanJson(text)).toBeUndefined();
  expect(parseStrictJson(text)).toEqual(JSON.parse(text));
});

describe("texts that are not JSON", () => {
  test("cause neither an exception nor an endless loop", () => {
    const sign = fc.constantFrom("{", "}", "[", "]", '"', "\\", ",", ":", "a", "1", " ", "\ud800");
    fc.assert(
      fc.property(fc.array(sign, { maxLength: 60 }), (signs) => void scanJson(signs.join(""))),
      {
        numRuns: 2000,
      },
    );
  });

  test("are refused at the same limits", () => {
    expect(scanJson("[".repeat(1_000_000))).toEqual({ kind: "too_deep", max: MAX_JSON_DEPTH });
    expect(scanJson("1,".repeat(1_000_000))).toEqual({ kind: "too_many_values", max: MAX_JSON_VALUES });
  });
});
