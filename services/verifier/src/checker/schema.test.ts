import { describe, expect, test } from "vitest";
import { UnsupportedPattern } from "./patterns.ts";
import {
  type CompiledSchema,
  compileSchema,
  type Dialect,
  InvalidSchema,
  type Strictness,
} from "./schema.ts";

const compile = (
  schema: unknown,
  dialect: Dialect = "draft-07",
  strictness: Strictness = "contract",
): CompiledSchema => compileSchema(schema, dialect, strictness);
const both: Strictness[] = ["contract", "plain"];

describe("usable, strict or not", () => {
  test.each<[what: string, schema: unknown, good: unknown, bad: unknown]>([
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
      "members of others",
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
      null,
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
      "a member that is named as Ajv's $data",
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

  test("a violation says where", () => {
    const schema = { type: "object", properties: { a: { type: "array", items: { type: "number" } } } };
    expect(compile(schema)({ a: [1, "2"] })).toEqual([{ path: "/a/1", message: "must be number" }]);
  });
});

describe("the draft", () => {
  const dependent = { type: "object", dependentRequired: { a: ["b"] } };
  const prefix = { type: "array", prefixItems: [{ type: "string" }] };
  test("is the default's, or what $schema says", () => {
    expect(compile(prefix, "2020-12")([1])).toHaveLength(1);
    expect(compile({ ...prefix, $schema: "https://json-schema.org/draft/2020-12/schema" })([1])).toHaveLength(
      1,
    );
    expect(() => compile(prefix)).toThrow(InvalidSchema);
    expect(compile(dependent, "2020-12")({ a: 1 })).toHaveLength(1);
  });
  test.each(["http://json-schema.org/draft-04/schema#", "https://example.com/mine", "", 7, "toString"])(
    "$schema %j is refused",
    ($schema) => {
      expect(() => compile({ $schema })).toThrow(InvalidSchema);
    },
  );
});

describe("refused", () => {
  test.each<[what: string, schema: unknown]>([
    ["no schema", null],
    ["no schema either", "object"],
    ["a reference to another place", { $ref: "https://example.com/schema" }],
    ["a reference to nowhere", { $ref: "#/definitions/none" }],
    ["$async, whose answer would count as a pass", { $async: true, type: "string" }],
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

  test.each<[what: string, schema: unknown]>([
    ["a misspelt keyword", { type: "object", requird: ["a"] }],
    ["a bound on no type", { minLength: 3 }],
    ["an if without then and else", { if: { type: "string" } }],
  ])("%s, in a contract only", (_, schema) => {
    expect(() => compile(schema, "draft-07", "contract")).toThrow(InvalidSchema);
    expect(compile(schema, "draft-07", "plain")({})).toEqual([]);
  });

  test("a pattern that is not linear", () => {
    expect(() => compile({ type: "string", pattern: "(?=a)a" })).toThrow(UnsupportedPattern);
    expect(() => compile({ type: "object", patternProperties: { "(a)\\1": { type: "string" } } })).toThrow(
      UnsupportedPattern,
    );
  });
});

test("two schemas with one $id know nothing of each other", () => {
  const schema = (type: string) => ({ $id: "https://example.com/s", type });
  const [a, b] = [compile(schema("string")), compile(schema("number"))];
  expect([a("x"), b("x")].map((violations) => violations.length)).toEqual([0, 1]);
});

test("a schema without end throws RangeError when it runs", () => {
  expect(() => compile({ $ref: "#" })(1)).toThrow(RangeError);
});
