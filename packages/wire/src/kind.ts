/** The six kinds of JSON value. */
export type JsonKind = "null" | "boolean" | "number" | "string" | "array" | "object";

export const ALL_KINDS: readonly JsonKind[] = ["null", "boolean", "number", "string", "array", "object"];

/** The kind of a value; undefined for what JSON does not have (undefined, functions, bigints, symbols). */
export function kindOf(value: unknown): JsonKind | undefined {
  switch (typeof value) {
    case "string":
    case "number":
    case "boolean":
      return typeof value as JsonKind;
    case "object":
      if (value === null) return "null";
      return Array.isArray(value) ? "array" : "object";
    default:
      return undefined;
  }
}

/** A kind in a sentence: "an array". */
export function spell(kind: JsonKind | undefined): string {
  if (kind === undefined) return "not JSON";
  if (kind === "null") return "null";
  return kind === "array" || kind === "object" ? `an ${kind}` : `a ${kind}`;
}
