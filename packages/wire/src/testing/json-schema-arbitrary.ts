import type { JsonObject, JsonValue } from "@bufbuild/protobuf";
import fc from "fast-check";
import { dateTime, uri } from "./format-arbitraries.ts";
import { anyJson, memberName } from "./json-arbitraries.ts";
import { META_SCHEMA, metaSchemaDocument } from "./meta-schema-arbitrary.ts";

/** A JSON Schema (draft 2020-12) that uses only the subset below. */
export type Schema = JsonObject;

/**
 * The supported keywords. A schema with any other keyword is refused, so that the generator never ignores a constraint.
 */
const KEYWORDS = new Set(
  (
    "$schema $id title description type const enum pattern minLength maxLength format minimum maximum " +
    "items minItems maxItems uniqueItems properties required additionalProperties $ref"
  ).split(" "),
);

/**
 * Generates documents that a JSON Schema allows, in the form that `JSON.parse` returns. The documents include
 * the bounds: the longest strings, the largest integers, empty lists and objects. Throws a TypeError for a
 * keyword, format or reference outside the subset.
 */
export function documentsOf(schema: Schema): fc.Arbitrary<JsonValue> {
  return fromSchema(schema).map((value) => JSON.parse(JSON.stringify(value)) as JsonValue);
}

function fromSchema(schema: Schema): fc.Arbitrary<JsonValue> {
  for (const keyword of Object.keys(schema)) {
    if (!KEYWORDS.has(keyword)) throw new TypeError(`keyword ${keyword} is outside the subset`);
  }
  if (schema.$ref !== undefined) return fromReference(schema.$ref);
  if (schema.const !== undefined) return fc.constant(schema.const);
  if (Array.isArray(schema.enum)) return fc.constantFrom(...schema.enum);
  const types = Array.isArray(schema.type) ? schema.type : [schema.type];
  return fc.oneof(...types.map((type) => fromType(type, schema)));
}

function fromReference(ref: JsonValue): fc.Arbitrary<JsonValue> {
  if (ref === META_SCHEMA) return metaSchemaDocument();
  throw new TypeError(`reference ${JSON.stringify(ref)} is outside the subset`);
}

function fromType(type: JsonValue | undefined, schema: Schema): fc.Arbitrary<JsonValue> {
  switch (type) {
    case "null":
      return fc.constant(null);
    case "boolean":
      return fc.boolean();
    case "integer":
      return integerOf(schema);
    case "number":
      return numberOf(schema);
    case "string":
      return stringOf(schema);
    case "array":
      return arrayOf(schema);
    case "object":
      return objectOf(schema);
    default:
      throw new TypeError(`type ${JSON.stringify(type)} is outside the subset`);
  }
}

function integerOf(schema: Schema): fc.Arbitrary<JsonValue> {
  const min = numeric(schema.minimum) ?? Number.MIN_SAFE_INTEGER;
  const max = numeric(schema.maximum) ?? Number.MAX_SAFE_INTEGER;
  return fc.oneof(
    fc.maxSafeInteger().filter((n) => n >= min && n <= max),
    fc.constantFrom(min, max),
  );
}

function numberOf(schema: Schema): fc.Arbitrary<JsonValue> {
  const min = numeric(schema.minimum) ?? -Number.MAX_VALUE;
  const max = numeric(schema.maximum) ?? Number.MAX_VALUE;
  return fc.oneof(fc.double({ min, max, noNaN: true }), fc.constantFrom(min, max));
}

/**
 * Generates strings. A schema counts lengths in code points, so the longest strings also contain characters of two code
 * units.
 */
function stringOf(schema: Schema): fc.Arbitrary<JsonValue> {
  if (typeof schema.pattern === "string") return fc.stringMatching(new RegExp(schema.pattern));
  if (schema.format === "date-time") return dateTime();
  if (schema.format === "uri") return uri();
  if (schema.format !== undefined) throw new TypeError(`format ${schema.format} is outside the subset`);
  const minLength = numeric(schema.minLength) ?? 0;
  const maxLength = numeric(schema.maxLength);
  const any = fc.string({ unit: "binary", minLength, maxLength: maxLength ?? 0x7fffffff });
  if (maxLength === undefined) return any;
  const bounds = fc.constantFrom("x".repeat(minLength), "x".repeat(maxLength), "\u{1f6d2}".repeat(maxLength));
  return fc.oneof({ weight: 8, arbitrary: any }, { weight: 1, arbitrary: bounds });
}

function arrayOf(schema: Schema): fc.Arbitrary<JsonValue> {
  const item = isObject(schema.items) ? fromSchema(schema.items) : anyJson();
  const bounds = {
    minLength: numeric(schema.minItems) ?? 0,
    maxLength: numeric(schema.maxItems) ?? 0x7fffffff,
  };
  return schema.uniqueItems === true
    ? fc.uniqueArray(item, { ...bounds, selector: (value) => JSON.stringify(value) })
    : fc.array(item, bounds);
}

function objectOf(schema: Schema): fc.Arbitrary<JsonValue> {
  if (!isObject(schema.properties)) {
    const { additionalProperties: extra } = schema;
    return fc.dictionary(memberName(), isObject(extra) ? fromSchema(extra) : anyJson());
  }
  if (schema.additionalProperties !== false)
    throw new TypeError("named and open members together are outside the subset");
  const members: Record<string, fc.Arbitrary<JsonValue>> = {};
  for (const [name, member] of Object.entries(schema.properties))
    members[name] = fromSchema(member as Schema);
  return fc.record(members, { requiredKeys: (schema.required ?? []) as string[] });
}

function numeric(value: JsonValue | undefined): number | undefined {
  return typeof value === "number" ? value : undefined;
}

function isObject(value: JsonValue | undefined): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
