import { type JsonValue, toJson } from "@bufbuild/protobuf";
import { type Value, ValueSchema } from "@bufbuild/protobuf/wkt";
import { DeputeError, ErrorReason, invalid } from "@depute/core";
import { MAX_OUTPUT_BYTES } from "./rules/attestation-validation.ts";

/** A JSON value from a request, and its JSON text. */
export interface JsonText {
  value: JsonValue;
  text: string;
}

/**
 * Returns the JSON value in a request's field.
 *
 * @throws DeputeError INVALID_REQUEST if the value has no JSON form, such as NaN or a value without a kind;
 * LIMIT_EXCEEDED
 */
export function readValue(message: Value, field: string, maxBytes: number = MAX_OUTPUT_BYTES): JsonText {
  let value: JsonValue;
  try {
    value = toJson(ValueSchema, message);
  } catch (error) {
    throw invalid(field, `is not a JSON value: ${(error as Error).message}`);
  }
  const text = JSON.stringify(value);
  assertOutputSize(text, field, maxBytes);
  return { value, text };
}

/**
 * Reads a JSON field that a request carries either as a protobuf value or as JSON text. Does not parse the text.
 *
 * @returns the JSON text; undefined if the request has neither
 * @throws DeputeError INVALID_REQUEST if the request has both; the errors of readValue
 */
export function readText(message: Value | undefined, text: string, field: string): string | undefined {
  if (message !== undefined && text !== "")
    throw invalid(`${field}_json`, `must not be sent together with ${field}`);
  if (text !== "") return text;
  return message === undefined ? undefined : readValue(message, field).text;
}

/**
 * Reads the JSON text of a field that a request carries as a value or as text, and requires the field.
 *
 * @throws DeputeError INVALID_REQUEST, LIMIT_EXCEEDED
 */
export function requireText(message: Value | undefined, text: string, field: string): string {
  const read = readText(message, text, field);
  if (read === undefined) throw invalid(field, "is required");
  return read;
}

/**
 * Requires that a text has at most `maxBytes`.
 *
 * @throws DeputeError LIMIT_EXCEEDED
 */
export function assertOutputSize(text: string, field: string, maxBytes: number = MAX_OUTPUT_BYTES): void {
  if (Buffer.byteLength(text) <= maxBytes) return;
  throw new DeputeError(ErrorReason.LIMIT_EXCEEDED, `${field} is larger than ${maxBytes} bytes`, {
    metadata: { limit: `${field}_bytes`, max: String(maxBytes) },
    violations: [{ field, description: `must have at most ${maxBytes} bytes` }],
  });
}
