import { fromJsonString } from "@bufbuild/protobuf";
import { type Value, ValueSchema } from "@bufbuild/protobuf/wkt";

/**
 * The text that JSON.stringify makes of a value: members that are undefined are left out, and what JSON cannot say at all is null.
 *
 * @throws TypeError for a cycle or a bigint
 */
export function jsonText(value: unknown): string {
  return JSON.stringify(value) ?? "null";
}

/** A value of a worker's as it travels. @throws TypeError as jsonText */
export function toValue(value: unknown): Value {
  return fromJsonString(ValueSchema, jsonText(value));
}
