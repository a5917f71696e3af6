import type { JsonObject, JsonValue } from "@bufbuild/protobuf";

/** The `bytes` fields of the platform's messages that contain JSON. */
const JSON_BYTES = new Set(["inputSchema", "outputSchema"]);

/** Returns a copy of a document in which JSON replaces the `bytes` that contain it, so that people can read it. */
export function readable(value: JsonObject): JsonObject {
  return shownValue(value) as JsonObject;
}

function shownValue(value: JsonValue): JsonValue {
  if (Array.isArray(value)) return value.map(shownValue);
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).map(([name, each]) => [
      name,
      JSON_BYTES.has(name) && typeof each === "string" ? decoded(each) : shownValue(each),
    ]),
  );
}

function decoded(base64: string): JsonValue {
  try {
    return JSON.parse(Buffer.from(base64, "base64").toString("utf8")) as JsonValue;
  } catch {
    return base64;
  }
}
