import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { AGENTA_MESSAGES, agentaSchema, compile } from "./agenta-schemas.ts";
import { documentsOf, type Schema } from "./json-schema-arbitrary.ts";
import { META_SCHEMA } from "./meta-schema-arbitrary.ts";

function expectValid(schema: Schema, numRuns: number): void {
  const validate = compile(schema);
  fc.assert(
    fc.property(documentsOf(schema), (document) => {
      expect(validate(document), JSON.stringify(validate.errors)).toBe(true);
    }),
    { numRuns },
  );
}

describe("generates only documents that the schema allows", () => {
  test.each(AGENTA_MESSAGES)("%s", (message) => expectValid(agentaSchema(message), 100));

  test.each<Schema>([
    { type: "string", format: "date-time" },
    { type: "string", format: "uri" },
    { type: "string", minLength: 2, maxLength: 3 },
    { type: "string", pattern: "^[A-Za-z0-9._:-]{8,128}$" },
    { type: "integer", minimum: 1 },
    { type: "number", minimum: 0, maximum: 1 },
    { type: ["string", "number", "integer", "boolean", "null"] },
    { type: "array", items: { type: "boolean" }, minItems: 1, uniqueItems: true },
    { type: "object" },
    { $ref: META_SCHEMA },
  ])("%j", (schema) => expectValid(schema, 300));
});

test("documents reach the bounds, and omit and include optional members", () => {
  const sample = fc.sample(documentsOf(agentaSchema("offer")), { numRuns: 300, seed: 1 }) as Record<
    string,
    unknown
  >[];
  const having = (name: string) => sample.filter((document) => name in document).length;
  expect(having("offer_id")).toBe(300);
  for (const name of ["capabilities", "allowed_buyer_agents", "metadata"]) {
    expect(having(name)).toBeGreaterThan(100);
    expect(having(name)).toBeLessThan(300);
  }
  expect(
    sample.some(({ allowed_buyer_agents: buyers }) => Array.isArray(buyers) && buyers.length === 0),
  ).toBe(true);
  expect(sample.some(({ title }) => typeof title === "string" && [...title].length === 200)).toBe(true);
  expect(sample.some(({ title }) => typeof title === "string" && title.length > 200)).toBe(true);
});

test.each<[string, Schema]>([
  ["keyword minProperties", { type: "object", minProperties: 1 }],
  ["format email", { type: "string", format: "email" }],
  ["type", {}],
  ["reference", { $ref: "#/$defs/x" }],
  ["members", { type: "object", properties: {} }],
])("refuses a schema outside the subset: %s", (message, schema) => {
  expect(() => documentsOf(schema)).toThrow(message);
});
