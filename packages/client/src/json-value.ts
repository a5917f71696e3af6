import { fromJsonString } from "@bufbuild/protobuf";
import { type Value, ValueSchema } from "@bufbuild/protobuf/wkt";

/**
 * Returns the text that JSON.stringify makes of a value. Undefined members are left out, and a value without a JSON
 * form becomes null.
 *
 * @throws TypeError for a cycle or a bigint
 */
export function jsonText(value: unknown): string {
  return JSON.stringify(value) ?? "null";
}

/**
 * Converts a value to google.protobuf.Value, the type of values in messages.
 *
 * @throws TypeError for a cycle or a bigint
 */
export function toValue(value: unknown): Value {
  return fromJsonString(ValueSchema, jsonText(value));
}
