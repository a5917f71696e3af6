import { type Dialect, draftOf } from "./meta-schemas.ts";

/** Caps on a schema (per schema, before it is compiled); compiling takes longer than linear time in all of them. */
export const SCHEMA_LIMITS = {
  /** Bytes of its JSON. */
  bytes: 64 * 1024,
  /** Levels of nesting; a schema that is a boolean has 0. */
  depth: 32,
  /** JSON values of any kind, the schema itself among them. */
  nodes: 2000,
} as const;

/** What is found while measuring a schema. */
export interface SchemaSurvey {
  /** Words given for `format`, wherever they stand. */
  formats: Set<string>;
  /** Member names that begin with `x-`. */
  extensions: Set<string>;
  /** The drafts whose meta-schemas a reference may lead to. */
  metaSchemas: Set<Dialect>;
  /** The addresses that `$id` gives, without an empty fragment. */
  ids: Set<string>;
  /** Whether `$dynamicRef` or `$dynamicAnchor` occurs. */
  hasDynamics: boolean;
}

/** Walks a schema, and says what is over a cap, or what it found. */
export function surveySchema(schema: unknown): SchemaSurvey | { problem: string } {
  const found: SchemaSurvey = {
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
      if (name === "$async") return { problem: "$async is not supported" };
      if (name === "format" && typeof value === "string") found.formats.add(value);
      if (/^x-[A-Za-z0-9_:-]+$/.test(name)) found.extensions.add(name);
      if (typeof value === "string") noteAddress(found, name, value);
      open.push({ value, depth });
    }
  }
  const bytes = Buffer.byteLength(JSON.stringify(schema));
  return bytes > SCHEMA_LIMITS.bytes ? { problem: `larger than ${SCHEMA_LIMITS.bytes} bytes` } : found;
}

function noteAddress(found: SchemaSurvey, name: string, address: string): void {
  if (name === "$dynamicRef" || name === "$dynamicAnchor") found.hasDynamics = true;
  if (name === "$id") found.ids.add(address.replace(/#$/, ""));
  // A relative reference leads to a meta-schema only below an `$id` beside it.
  const draft = name === "$ref" || name === "$id" ? draftOf(address) : undefined;
  if (draft !== undefined) found.metaSchemas.add(draft);
}
