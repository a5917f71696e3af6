import fc from "fast-check";
import { expect, test } from "vitest";
import { compileSchema } from "./compile.ts";
import { fitsQuickly, MAX_OUTPUT_CHARS, MAX_STEPS, readQuickSchema } from "./quick-schema.ts";

function read(schema: unknown) {
  const quick = readQuickSchema(schema);
  if (quick === undefined) throw new Error("the schema is not quick");
  return quick;
}

test.each<[schema: unknown, why: string]>([
  [{ $ref: "#" }, "has a reference"],
  [{ type: "object", properties: { a: { $ref: "#" } } }, "has a nested reference"],
  [{ anyOf: [{ type: "string" }] }, "combines schemas"],
  [{ not: { type: "string" } }, "combines schemas"],
  [{ type: "string", pattern: "^a" }, "matches a pattern"],
  [{ type: "string", format: "date" }, "matches a format"],
  [{ type: "object", patternProperties: { a: true } }, "matches patterns"],
  [{ type: "array", items: {}, uniqueItems: true }, "compares items with one another"],
  [{ type: "array", contains: {} }, "has contains"],
  [{ enum: [{ a: 1 }] }, "compares a value that is not a scalar"],
  [{ const: [] }, "compares a value that is not a scalar"],
  [{ enum: ["a"], const: "a" }, "has both enum and const"],
  [{ type: "number", multipleOf: 0.1 }, "has multipleOf"],
  [JSON.parse('{"type":"object","properties":{"__proto__":{}}}'), "uses the name __proto__"],
  [{ type: "object", required: ["__proto__"] }, "uses the name __proto__"],
  [{ type: "object", required: [""] }, "uses the empty name, which Ajv ignores"],
  [{ type: "array", items: [{}] }, "has the draft-07 form of items"],
  [{ if: {}, else: {} }, "has if"],
])("%j is not a quick schema: it %s", (schema) => {
  expect(readQuickSchema(schema)).toBeUndefined();
});

const name = fc.constantFrom("a", "b", "toString", "constructor");
const scalar = fc.oneof(
  fc.constantFrom(null, true, false, 0, -0, 1, 1.5, -2, 1e300, "", "a", "ab", "𝄞", "\ud834", "𝄞a"),
  fc.string({ maxLength: 3 }),
  fc.integer({ min: -3, max: 3 }),
);
const { value } = fc.letrec((tie) => ({
  value: fc.oneof({ depthSize: "small", withCrossShrink: true }, scalar, tie("list"), tie("members")),
  list: fc.array(tie("value"), { maxLength: 4 }),
  members: fc.dictionary(name, tie("value"), { maxKeys: 4, noNullPrototype: true }),
}));
const type = fc.constantFrom("null", "boolean", "number", "integer", "string", "array", "object");
const count = fc.integer({ min: 0, max: 3 });
const { schema } = fc.letrec((tie) => ({
  schema: fc.oneof({ depthSize: "small" }, fc.boolean(), tie("words")),
  words: fc.record(
    {
      type: fc.oneof(type, fc.uniqueArray(type, { minLength: 1, maxLength: 4 })),
      enum: fc.uniqueArray(scalar, { minLength: 1, maxLength: 5, selector: (each) => JSON.stringify(each) }),
      minimum: fc.integer({ min: -3, max: 3 }),
      maximum: fc.integer({ min: -3, max: 3 }),
      exclusiveMinimum: fc.integer({ min: -3, max: 3 }),
      exclusiveMaximum: fc.integer({ min: -3, max: 3 }),
      minLength: count,
      maxLength: count,
      minItems: count,
      maxItems: count,
      minProperties: count,
      maxProperties: count,
      items: tie("schema"),
      additionalProperties: tie("schema"),
      properties: fc.dictionary(name, tie("schema"), { maxKeys: 4, noNullPrototype: true }),
      required: fc.uniqueArray(name, { maxLength: 3 }),
      title: fc.string(),
    },
    { requiredKeys: [] },
  ),
}));

test.each(["draft-07", "2020-12"] as const)(
  "agrees with Ajv on every value that it accepts: %s",
  (dialect) => {
    fc.assert(
      fc.property(schema, fc.array(value, { minLength: 1, maxLength: 5 }), (schemaDocument, values) => {
        const quick = read(schemaDocument);
        const compiled = compileSchema(schemaDocument, dialect, "plain");
        for (const each of values) {
          const text = JSON.stringify(each);
          expect(fitsQuickly(quick, text)).toBe(compiled(JSON.parse(text)).length === 0);
        }
      }),
      { numRuns: 1000 },
    );
  },
);

test.each([
  ["1e999", true],
  ["[1", true],
  ['"a" "b"', true],
  [JSON.stringify("x".repeat(MAX_OUTPUT_CHARS)), true],
  ["1e999", { type: "number" }],
])("needs a worker thread for an output: %#", (text, schemaDocument) => {
  expect(fitsQuickly(read(schemaDocument), text)).toBe(false);
});

const many = Object.fromEntries(Array.from({ length: 900 }, (_, i) => [`p${i}`, {}]));
const nested = (depth: number): object =>
  depth === 0 ? { type: "array", items: {} } : { type: "array", items: nested(depth - 1) };

test.each<[what: string, schema: unknown, output: string]>([
  ["many items", { type: "array", items: {} }, `[${"0,".repeat(30_000)}0]`],
  ["few members of many that might be", { items: { properties: many } }, `[${"{},".repeat(20_000)}{}]`],
  ["required members", { items: { required: ["a"] } }, `[${'{"a":0},'.repeat(7_000)}{}]`],
  ["many members", { additionalProperties: {} }, `{${Array.from({ length: 6000 }, (_, i) => `"${i}":{}`)}}`],
  ["nested items", nested(30), `${"[".repeat(30)}${"[],".repeat(20_000)}0${"]".repeat(30)}`],
  ["long texts", { type: "array", items: { maxLength: 9e9 } }, `["${"x".repeat(60_000)}"]`],
])("%s: stops at the step limit", (_, schemaDocument, output) => {
  expect(output.length).toBeLessThanOrEqual(MAX_OUTPUT_CHARS);
  const steps = { remaining: MAX_STEPS };
  fitsQuickly(read(schemaDocument), output, steps);
  // The last step may subtract more than one: at most the number of names in a schema or an output.
  expect(steps.remaining).toBeGreaterThan(-MAX_OUTPUT_CHARS);
  expect(MAX_STEPS - steps.remaining).toBeGreaterThan(3000);
});
