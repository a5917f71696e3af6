import { type JsonValue, toJson } from "@bufbuild/protobuf";
import { type Value, ValueSchema } from "@bufbuild/protobuf/wkt";
import { Block } from "./text.tsx";

/** Shows a JSON value from an untrusted party as indented text. */
export function Json({ value, label }: { readonly value: JsonValue | undefined; readonly label: string }) {
  if (value === undefined) return <p className="quiet">None</p>;
  return <Block value={typeof value === "string" ? value : JSON.stringify(value, null, 2)} label={label} />;
}

/** Shows a protobuf value from an untrusted party as indented JSON. */
export function ValueView({ value, label }: { readonly value: Value | undefined; readonly label: string }) {
  return <Json value={value === undefined ? undefined : toJson(ValueSchema, value)} label={label} />;
}

/**
 * Parses bytes that contain JSON text, such as a stored schema; undefined without bytes. Returns the text itself if it
 * is not valid JSON.
 */
export function bytesAsJson(bytes: Uint8Array | undefined): JsonValue | undefined {
  if (bytes === undefined || bytes.length === 0) return undefined;
  const text = new TextDecoder().decode(bytes);
  try {
    return JSON.parse(text) as JsonValue;
  } catch {
    return text;
  }
}
