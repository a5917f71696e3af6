import type { JsonValue } from "@bufbuild/protobuf";
import fc from "fast-check";
import { anyJson, memberName } from "./json-arbitraries.ts";

/** The address of the meta-schema of JSON Schema draft 2020-12. */
export const META_SCHEMA = "https://json-schema.org/draft/2020-12/schema";

const TYPES = ["array", "boolean", "integer", "null", "number", "object", "string"];

/** Generates documents that are JSON Schemas: true, false, or an object of known and unknown keywords. */
export function metaSchemaDocument(): fc.Arbitrary<JsonValue> {
  const { schema } = fc.letrec<{ schema: JsonValue }>((tie) => ({
    schema: fc.oneof({ maxDepth: 3, depthIdentifier: "schema" }, fc.boolean(), keywords(tie("schema"))),
  }));
  return schema;
}

function keywords(schema: fc.Arbitrary<JsonValue>): fc.Arbitrary<JsonValue> {
  const count = fc.nat();
  return fc.record(
    {
      $schema: fc.constant(META_SCHEMA),
      title: fc.string({ unit: "binary" }),
      type: fc.oneof(fc.constantFrom(...TYPES), fc.subarray(TYPES, { minLength: 1 })),
      enum: fc.array(anyJson()),
      const: anyJson(),
      default: anyJson(),
      multipleOf: fc.double({ min: 0, minExcluded: true, max: 1e9, noNaN: true }),
      minimum: fc.double({ noNaN: true, noDefaultInfinity: true }),
      maxLength: count,
      pattern: fc.constantFrom("^a+$", "[0-9]{1,3}", ""),
      items: schema,
      prefixItems: fc.array(schema, { minLength: 1, maxLength: 3 }),
      uniqueItems: fc.boolean(),
      properties: fc.dictionary(memberName(), schema, { maxKeys: 3 }),
      required: fc.uniqueArray(fc.string({ unit: "binary" })),
      additionalProperties: schema,
      anyOf: fc.array(schema, { minLength: 1, maxLength: 2 }),
      $defs: fc.dictionary(memberName(), schema, { maxKeys: 2 }),
      "x-unknown": anyJson(),
    },
    { requiredKeys: [] },
  ) as fc.Arbitrary<JsonValue>;
}
