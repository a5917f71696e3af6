import fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  type CompiledSchema,
  compilePublished,
  compileSchema,
  InvalidSchema,
  type Strictness,
} from "./compile.ts";
import type { Dialect } from "./meta-schemas.ts";
import { UnsupportedPattern } from "./patterns.ts";

const compile = (
  schema: unknown,
  dialect: Dialect = "draft-07",
  strictness: Strictness = "contract",
): CompiledSchema => compileSchema(schema, dialect, strictness);
const both: Strictness[] = ["contract", "plain"];

describe("a usable schema, strict or not", () => {
  test.each<[description: string, schema: unknown, good: unknown, bad: unknown]>([
    [
      "annotations",
      {
        type: "string",
        title: "t",
        description: "d",
        default: 1,
        examples: [2],
        $comment: "c",
        readOnly: true,
        example: 3,
      },
      "x",
      1,
    ],
    [
      "members of other types",
      { type: "object", "x-order": 1, properties: { a: { type: "string", "x-ui:hint": {} } } },
      { a: "" },
      { a: 1 },
    ],
    ["an unknown format", { type: "string", format: "sentiment-label" }, "x", 1],
    ["a known format", { type: "string", format: "date-time" }, "2026-01-01T00:00:00Z", "yesterday"],
    ["a union", { type: ["string", "null"], minLength: 1 }, null, ""],
    ["a tuple", { type: "array", items: [{ type: "string" }, { type: "number" }] }, ["a", 1], ["a", "b"]],
    ["a required member without a rule", { type: "object", required: ["a"] }, { a: 1 }, {}],
    [
      "a required member that every object inherits",
      { type: "object", required: ["toString"] },
      { toString: 1 },
      {},
    ],
    ["a required __proto__", { type: "object", required: ["__proto__"] }, JSON.parse('{"__proto__":1}'), {}],
    [
      "a rule for __proto__",
      { type: "object", properties: JSON.parse('{"__proto__":{"type":"number"}}') },
      JSON.parse('{"__proto__":1}'),
      JSON.parse('{"__proto__":"1"}'),
    ],
    [
      "a rule for __proto__ beside nothing else",
      {
        type: "object",
        properties: JSON.parse('{"__proto__":{"type":"number"}}'),
        additionalProperties: false,
      },
      JSON.parse('{"__proto__":1}'),
      { a: 1 },
    ],
    [
      "a reference within",
      {
        type: "object",
        properties: { a: { $ref: "#/definitions/n" } },
        definitions: { n: { type: "number" } },
      },
      { a: 1 },
      { a: "1" },
    ],
    [
      "a schema that refers to itself",
      { type: "object", properties: { next: { $ref: "#" } }, required: ["v"] },
      { v: 1, next: { v: 2 } },
      { v: 1, next: {} },
    ],
    ["a pattern", { type: "string", pattern: "^\\p{L}+$" }, "é", "1"],
    [
      "patternProperties",
      { type: "object", patternProperties: { "^n_": { type: "number" } } },
      { n_a: 1 },
      { n_a: "1" },
    ],
    ["$schema", { $schema: "http://json-schema.org/draft-07/schema#", type: "number" }, 1, "1"],
    [
      "a member named like Ajv's $data",
      { type: "object", properties: { $data: { type: "number" } } },
      { $data: 1 },
      { $data: "1" },
    ],
  ])("%s", (_, schema, good, bad) => {
    for (const strictness of both) {
      const compiled = compile(schema, "draft-07", strictness);
      expect(compiled(good)).toEqual([]);
      expect(compiled(bad)).not.toEqual([]);
    }
  });

  test("booleans", () => {
    expect(compile(true)(null)).toEqual([]);
    expect(compile(false)(null)).toEqual([{ path: "", message: "boolean schema is false" }]);
  });

  test("a violation has its path", () => {
    const schema = { type: "object", properties: { a: { type: "array", items: { type: "number" } } } };
    expect(compile(schema)({ a: [1, "2"] })).toEqual([{ path: "/a/1", message: "must be number" }]);
  });
});

describe("the draft", () => {
  const dependent = { type: "object", dependentRequired: { a: ["b"] } };
  const prefix = { type: "array", prefixItems: [{ type: "string" }] };
  test("is the default's, or the one that $schema names", () => {
    expect(compile(prefix, "2020-12")([1])).toHaveLength(1);
    expect(compile({ ...prefix, $schema: "https://json-schema.org/draft/2020-12/schema" })([1])).toHaveLength(
      1,
    );
    expect(() => compile(prefix)).toThrow(InvalidSchema);
    expect(compile(dependent, "2020-12")({ a: 1 })).toHaveLength(1);
  });
  test.each(["http://json-schema.org/draft-04/schema#", "https://example.com/mine", "", 7, "toString"])(
    "refuses $schema %j",
    ($schema) => {
      expect(() => compile({ $schema })).toThrow(InvalidSchema);
    },
  );
});

describe("refused", () => {
  test.each<[description: string, schema: unknown]>([
    ["no schema", null],
    ["is not a schema", "object"],
    ["a reference to another place", { $ref: "https://example.com/schema" }],
    ["a reference to nowhere", { $ref: "#/definitions/none" }],
    ["$async, whose promise would count as a pass", { $async: true, type: "string" }],
    ["$async within", { properties: { a: { $async: true } } }],
    ["$data", { type: "number", minimum: { $data: "1/a" } }],
    ["no such type", { type: "strin" }],
    ["a keyword's value of the wrong kind", { type: "string", minLength: "3" }],
    [
      "too many values",
      {
        type: "object",
        properties: Object.fromEntries(
          Array.from({ length: 700 }, (_, i) => [`p${i}`, { type: "string", minLength: 1 }]),
        ),
      },
    ],
    ["too large", { type: "string", description: "d".repeat(64 * 1024) }],
    ["too deep", Array.from({ length: 17 }).reduce<unknown>((inner) => ({ properties: { a: inner } }), {})],
    ["a format named as an inherited member", { type: "string", format: "constructor" }],
  ])("%s", (_, schema) => {
    for (const strictness of both)
      expect(() => compile(schema, "draft-07", strictness)).toThrow(InvalidSchema);
  });

  test.each<[description: string, schema: unknown]>([
    ["a misspelt keyword", { type: "object", requird: ["a"] }],
    ["a bound on no type", { minLength: 3 }],
    ["an if without then and else", { if: { type: "string" } }],
  ])("%s, in a contract only", (_, schema) => {
    expect(() => compile(schema, "draft-07", "contract")).toThrow(InvalidSchema);
    expect(compile(schema, "draft-07", "plain")({})).toEqual([]);
  });

  test("a pattern without a linear-time form", () => {
    expect(() => compile({ type: "string", pattern: "(?=a)a" })).toThrow(UnsupportedPattern);
    expect(() => compile({ type: "object", patternProperties: { "(a)\\1": { type: "string" } } })).toThrow(
      UnsupportedPattern,
    );
  });
});

describe("several patterns of one schema", () => {
  const text = (pattern: string) => ({ type: "string", pattern });
  test.each<[description: string, schema: unknown, good: unknown[], bad: unknown[]]>([
    [
      "of two members",
      { type: "object", properties: { a: text("^a"), b: text("^b") } },
      [{ a: "a", b: "b" }],
      [{ b: "a" }, { a: "b" }],
    ],
    [
      "of one member",
      { type: "string", allOf: [text("a"), text("b"), text("c")] },
      ["abc"],
      ["ab", "bc", "ac"],
    ],
    [
      "of names",
      {
        type: "object",
        patternProperties: { "^n_": { type: "number" }, "^s_": { type: "string" } },
        additionalProperties: false,
      },
      [{ n_a: 1, s_a: "" }],
      [{ s_a: 1 }, { n_a: "" }, { x_a: 1 }],
    ],
    [
      "of names and members",
      {
        type: "object",
        propertyNames: { pattern: "^[a-z]+$" },
        patternProperties: { "^x": text("^[0-9]+$") },
      },
      [{ x: "1", a: 1 }],
      [{ x: "a" }, { X: "1" }],
    ],
    [
      "that differ in slashes only",
      { type: "object", properties: { a: text("/u"), b: text("/") } },
      [{ a: "/u", b: "/" }],
      [{ a: "/" }, { b: "u" }],
    ],
    [
      "below a reference",
      {
        type: "array",
        items: { $ref: "#/definitions/n" },
        contains: text("^b"),
        definitions: { n: text("b$") },
      },
      [["b"]],
      [["ab"], ["b", "bc"]],
    ],
  ])("%s", (_, schema, good, bad) => {
    for (const strictness of both) {
      for (const dialect of ["draft-07", "2020-12"] as const) {
        const compiled = compile(schema, dialect, strictness);
        for (const value of good) expect([value, compiled(value)]).toEqual([value, []]);
        for (const value of bad) expect([value, compiled(value)]).not.toEqual([value, []]);
      }
    }
  });

  test("applies each pattern to its own member", () => {
    const pattern = fc.constantFrom("^a", "^b", "a$", "b$", "a", "b", "^a.b$", "[^a]", "^\\d+$", "/", "x{2}");
    const word = fc.constantFrom("", "a", "b", "ab", "ba", "a-b", "12", "/", "xx");
    fc.assert(
      fc.property(fc.array(fc.tuple(pattern, word), { maxLength: 6 }), (members) => {
        const fields = members.map(([pattern, word], i) => ({ name: `m${i}`, pattern, word }));
        const properties = Object.fromEntries(fields.map(({ name, pattern }) => [name, text(pattern)]));
        const value = Object.fromEntries(fields.map(({ name, word }) => [name, word]));
        const fits = fields.every(({ pattern, word }) => new RegExp(pattern, "u").test(word));
        expect(compile({ type: "object", properties })(value).length === 0).toBe(fits);
      }),
    );
  });
});

describe("a reference to a meta-schema", () => {
  const DRAFT_07 = "http://json-schema.org/draft-07/schema";
  const DRAFT_2020 = "https://json-schema.org/draft/2020-12/schema";
  const cases: [dialect: Dialect, $ref: string, good: unknown, bad: unknown][] = [];
  for (const dialect of ["draft-07", "2020-12"] as const) {
    cases.push(
      [dialect, DRAFT_07, { type: "string", items: [{}] }, { type: "strin" }],
      [dialect, `${DRAFT_07}#`, { definitions: { a: true } }, { definitions: { a: 1 } }],
      [dialect, `${DRAFT_07}#/definitions/nonNegativeInteger`, 3, -1],
      [dialect, DRAFT_2020, { prefixItems: [{ type: "string" }] }, { prefixItems: [{ type: "strin" }] }],
      [dialect, DRAFT_2020, { $defs: { a: { not: { minLength: 1 } } } }, { not: { minLength: "1" } }],
      [dialect, "https://json-schema.org/draft/2020-12/meta/validation", { maxItems: 1 }, { maxItems: -1 }],
      [dialect, "https://json-schema.org/draft/2020-12/meta/core#/$defs/anchorString", "a", "#a"],
    );
  }
  test.each(cases)("from %s to %s", (dialect, $ref, good, bad) => {
    for (const strictness of both) {
      const compiled = compile({ $ref }, dialect, strictness);
      expect(compiled(good)).toEqual([]);
      expect(compiled(bad)).not.toEqual([]);
      const within = compile({ type: "object", properties: { s: { $ref } } }, dialect, strictness);
      expect(within({ s: good })).toEqual([]);
      expect(within({ s: bad })).not.toEqual([]);
    }
  });

  test("leads nowhere else on that host", () => {
    for (const $ref of [
      "https://json-schema.org/draft/2019-09/schema",
      "http://json-schema.org/draft-06/schema#",
    ])
      expect(() => compile({ $ref })).toThrow(InvalidSchema);
  });

  test("may be relative to an $id beside it", () => {
    const schema = { $id: "https://json-schema.org/draft/2020-12/mine", $ref: "schema" };
    expect(compile(schema, "2020-12", "plain")({ type: "string" })).toEqual([]);
    expect(compile(schema, "2020-12", "plain")({ type: "strin" })).not.toEqual([]);
  });

  test("a copy of a meta-schema validates itself", () => {
    const copy = { $id: `${DRAFT_07}#`, $schema: `${DRAFT_07}#`, type: "object", required: ["a"] };
    const compiled = compile({ ...copy, properties: { inner: { $ref: `${DRAFT_07}#` } } });
    expect([compiled({ a: 1 }), compiled({ a: 1, inner: { a: 1 } })]).toEqual([[], []]);
    expect(compiled({ a: 1, inner: {} })).not.toEqual([]);
  });

  test("adds no keyword of 2020-12 to a schema of draft-07", () => {
    const mixed = { properties: { a: { $ref: DRAFT_2020 }, b: { $dynamicRef: "#b" } } };
    expect(() => compile(mixed, "draft-07", "plain")).toThrow(InvalidSchema);
  });
});

test.each([
  ["dependencies", '{"dependencies":{"__proto__":["a"]}}'],
  ["a pattern's rule", '{"patternProperties":{"__proto__":{"type":"string"}}}'],
  ["an unknown keyword", '{"more":{"properties":{"__proto__":{"type":"string"}}}}'],
])("refuses a rule for the member __proto__ in %s, where it would have no effect", (_, schema) => {
  expect(() => compile(JSON.parse(schema), "draft-07", "plain")).toThrow(InvalidSchema);
});

test("a value of a constant may have a member __proto__", () => {
  const schema = JSON.parse('{"enum":[{"__proto__":1}]}');
  expect(compile(schema, "draft-07", "plain")(JSON.parse('{"__proto__":1}'))).toEqual([]);
});

test("compiles a schema of the platform with linear patterns and without a type beside other keywords", () => {
  const compiled = compilePublished({
    $id: "https://example.com/published",
    properties: { a: { pattern: "^a" }, b: { pattern: "^b" } },
    additionalProperties: false,
  });
  expect(compiled({ a: "a", b: "b" })).toEqual([]);
  expect(compiled({ b: "a" })).toHaveLength(1);
  expect(compiled({ c: 1 })).toEqual([{ path: "", message: expect.any(String), member: "c" }]);
  expect(() => compilePublished({ patern: "a" })).toThrow(InvalidSchema);
  expect(() => compilePublished({ pattern: "(?=a)" })).toThrow(UnsupportedPattern);
});

test("two schemas with one $id are independent", () => {
  const schema = (type: string) => ({ $id: "https://example.com/s", type });
  const [a, b] = [compile(schema("string")), compile(schema("number"))];
  expect([a("x"), b("x")].map((violations) => violations.length)).toEqual([0, 1]);
});

test("a schema with endless recursion throws RangeError when it runs", () => {
  expect(() => compile({ $ref: "#" })(1)).toThrow(RangeError);
});
