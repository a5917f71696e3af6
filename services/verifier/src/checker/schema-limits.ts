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
}

/** Walks a schema, and says what is over a cap, or what it found. */
export function surveySchema(schema: unknown): SchemaSurvey | { problem: string } {
  const found: SchemaSurvey = { formats: new Set(), extensions: new Set() };
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
      open.push({ value, depth });
    }
  }
  const bytes = Buffer.byteLength(JSON.stringify(schema));
  return bytes > SCHEMA_LIMITS.bytes ? { problem: `larger than ${SCHEMA_LIMITS.bytes} bytes` } : found;
}
