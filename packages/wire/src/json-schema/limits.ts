import { type Dialect, draftOf } from "./meta-schemas.ts";

/**
 * Limits of one schema. The limits are checked before the schema is compiled, because the compile time grows
 * faster than each of these sizes.
 */
export const SCHEMA_LIMITS = {
  /** Maximum size of the schema's JSON in bytes. */
  bytes: 64 * 1024,
  /** Maximum levels of nesting. A boolean schema has no level. */
  depth: 32,
  /** Maximum number of JSON values of any kind, including the schema itself. */
  nodes: 2000,
} as const;

/** Facts about a schema, collected while its size is measured. */
export interface SchemaSurvey {
  /** All values of `format` in the schema. */
  formats: Set<string>;
  /** Member names that begin with `x-`. */
  extensions: Set<string>;
  /** The drafts whose meta-schemas the schema may reference. */
  metaSchemas: Set<Dialect>;
  /** The addresses in `$id`, written without an empty fragment. */
  ids: Set<string>;
  /** Whether `$dynamicRef` or `$dynamicAnchor` occurs in the schema. */
  hasDynamics: boolean;
}

/**
 * Measures a schema. If the schema exceeds a limit or uses `$async`, returns `problem`, which states the fault.
 * Otherwise returns the collected facts.
 */
export function surveySchema(schema: unknown): SchemaSurvey | { problem: string } {
  const survey: SchemaSurvey = {
    formats: new Set(),
    extensions: new Set(),
    metaSchemas: new Set(),
    ids: new Set(),
    hasDynamics: false,
  };
  const open: { value: unknown; depth: number }[] = [{ value: schema, depth: 0 }];
  let nodes = 0;
  for (let at = open.pop(); at !== undefined; at = open.pop()) {
    nodes += 1;
    if (nodes + open.length > SCHEMA_LIMITS.nodes)
      return { problem: `more than ${SCHEMA_LIMITS.nodes} values` };
    if (typeof at.value !== "object" || at.value === null) continue;
    const depth = at.depth + 1;
    if (depth > SCHEMA_LIMITS.depth) return { problem: `nested deeper than ${SCHEMA_LIMITS.depth}` };
    for (const [name, value] of Object.entries(at.value)) {
      if (name === "$async") return { problem: "$async is not supported; remove it" };
      if (name === "format" && typeof value === "string") survey.formats.add(value);
      if (/^x-[A-Za-z0-9_:-]+$/.test(name)) survey.extensions.add(name);
      if (typeof value === "string") noteAddress(survey, name, value);
      open.push({ value, depth });
    }
  }
  const bytes = Buffer.byteLength(JSON.stringify(schema));
  return bytes > SCHEMA_LIMITS.bytes ? { problem: `larger than ${SCHEMA_LIMITS.bytes} bytes` } : survey;
}

function noteAddress(survey: SchemaSurvey, name: string, address: string): void {
  if (name === "$dynamicRef" || name === "$dynamicAnchor") survey.hasDynamics = true;
  if (name === "$id") survey.ids.add(address.replace(/#$/, ""));
  // Only absolute addresses of `$ref` and `$id` are compared. A relative reference can reach a meta-schema only
  // together with such an `$id`.
  const draft = name === "$ref" || name === "$id" ? draftOf(address) : undefined;
  if (draft !== undefined) survey.metaSchemas.add(draft);
}
