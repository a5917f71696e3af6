import { type JsonValue, toJson } from "@bufbuild/protobuf";
import { type Value, ValueSchema } from "@bufbuild/protobuf/wkt";
import { DeputeError, ErrorReason, invalid } from "@depute/core";
import { MAX_OUTPUT_BYTES } from "./rules/attestation-validation.ts";

/** A JSON value of a request, and its text. */
export interface JsonText {
  value: JsonValue;
  text: string;
}

/**
 * Reads a value of a request.
 *
 * @throws DeputeError INVALID_REQUEST for one that is not JSON (NaN, a value of no kind), LIMIT_EXCEEDED
 */
export function readValue(message: Value, field: string, maxBytes: number = MAX_OUTPUT_BYTES): JsonText {
  let value: JsonValue;
  try {
    value = toJson(ValueSchema, message);
  } catch (error) {
    throw invalid(field, `not a JSON value: ${(error as Error).message}`);
  }
  const text = JSON.stringify(value);
  assertOutputSize(text, field, maxBytes);
  return { value, text };
}

/** @throws DeputeError LIMIT_EXCEEDED */
export function assertOutputSize(text: string, field: string, maxBytes: number = MAX_OUTPUT_BYTES): void {
  if (Buffer.byteLength(text) <= maxBytes) return;
  throw new DeputeError(ErrorReason.LIMIT_EXCEEDED, `${field} is larger than ${maxBytes} bytes`, {
    metadata: { limit: `${field}_bytes`, max: String(maxBytes) },
    violations: [{ field, description: `larger than ${maxBytes} bytes` }],
  });
}
