import { isObject } from "@depute/core";

/**
 * Keywords of draft-07 and 2020-12 whose value is a schema or a list of schemas. The value of a keyword in MAP_KEYWORDS
 * is a map of schemas.
 */
const SCHEMA_KEYWORDS = new Set([
  ...["additionalItems", "additionalProperties", "allOf", "anyOf", "contains", "contentSchema", "else", "if"],
  ...[
    "items",
    "not",
    "oneOf",
    "prefixItems",
    "propertyNames",
    "then",
    "unevaluatedItems",
    "unevaluatedProperties",
  ],
]);
const MAP_KEYWORDS = new Set([
  "$defs",
  "definitions",
  "dependencies",
  "dependentSchemas",
  "patternProperties",
  "properties",
]);
/** Keywords whose value is data, and not a schema. */
const DATA_KEYWORDS = new Set(["const", "default", "enum", "example", "examples"]);

const NAME = "__proto__";

/**
 * Returns a schema in which rules for a member named `__proto__` take effect. Ajv skips that name in `properties`, so
 * the rule is repeated under `patternProperties`. A schema without that name is returned unchanged.
 *
 * @returns undefined if a keyword other than `properties` has a rule for that member
 */
export function withProtoMembers(schema: unknown): unknown {
  const all = occurrences(schema);
  if (all === 0) return schema;
  const copy: unknown = JSON.parse(JSON.stringify(schema));
  return all === rewrite(copy) ? copy : undefined;
}

/** Counts the members named `__proto__` in a value. */
function occurrences(value: unknown): number {
  if (typeof value !== "object" || value === null) return 0;
  let count = Object.hasOwn(value, NAME) ? 1 : 0;
  for (const inner of Object.values(value)) count += occurrences(inner);
  return count;
}

/**
 * Repeats each schema's rule for the property `__proto__` under `patternProperties`, because Ajv skips this name in
 * `properties`. Changes the schema in place. Returns the number of occurrences of the name that were handled.
 */
function rewrite(schema: unknown): number {
  if (Array.isArray(schema)) return schema.reduce<number>((count, inner) => count + rewrite(inner), 0);
  if (!isObject(schema)) return 0;
  let count = 0;
  for (const [keyword, value] of Object.entries(schema)) {
    if (DATA_KEYWORDS.has(keyword)) count += occurrences(value);
    else if (SCHEMA_KEYWORDS.has(keyword)) count += rewrite(value);
    else if (MAP_KEYWORDS.has(keyword) && isObject(value))
      for (const inner of Object.values(value)) count += rewrite(inner);
  }
  const { properties } = schema;
  if (isObject(properties) && Object.hasOwn(properties, NAME)) {
    const patterns = isObject(schema.patternProperties) ? schema.patternProperties : {};
    const rules = [`^${NAME}$`, `^(?:${NAME})$`].find((pattern) => !Object.hasOwn(patterns, pattern));
    if (rules !== undefined) {
      schema.patternProperties = { ...patterns, [rules]: properties[NAME] };
      count += 1;
    }
  }
  return count;
}
