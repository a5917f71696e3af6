import type { Value } from "@bufbuild/protobuf/wkt";
import { DeputeError, ErrorReason, invalid } from "@depute/core";

/** Maximum size of an input or output as JSON, in bytes. */
export const MAX_VALUE_BYTES = 1024 * 1024;

/** Maximum size of a preliminary result as JSON, in bytes. */
export const MAX_PARTIAL_BYTES = 256 * 1024;

/** Maximum size of a checkpoint as JSON, in bytes. */
export const MAX_CHECKPOINT_BYTES = 512 * 1024;

/** Maximum size of the details of a question as JSON, in bytes. */
export const MAX_QUESTION_BYTES = 32 * 1024;

/** Maximum size of an answer to a question as JSON, in bytes. */
export const MAX_ANSWER_BYTES = 64 * 1024;

/** Maximum stored size of all answers of a task together, in bytes. One assignment contains all answers. */
export const MAX_ANSWERS_BYTES = 256 * 1024;

/**
 * Maximum nesting of objects and arrays. One JSON level becomes up to three protobuf levels, and protobuf parsers
 * refuse more than 100 levels.
 */
export const MAX_VALUE_DEPTH = 30;

const utf8 = new TextEncoder();

/**
 * Refuses a value that is not JSON, or that exceeds `maxBytes` or MAX_VALUE_DEPTH.
 *
 * @param field the place of the value in the request, e.g. `draft.input`
 * @throws DeputeError LIMIT_EXCEEDED; INVALID_REQUEST for a value without a kind or a number that JSON cannot write
 */
export function checkValue(value: Value, field: string, maxBytes: number): void {
  const meter: Meter = { field, maxBytes, bytes: 0 };
  measure(value, 0, meter);
}

interface Meter {
  readonly field: string;
  readonly maxBytes: number;
  bytes: number;
}

function measure({ kind }: Value, depth: number, meter: Meter): void {
  switch (kind.case) {
    case "nullValue":
      count(4, meter);
      return;
    case "boolValue":
      count(kind.value ? 4 : 5, meter);
      return;
    case "numberValue":
      if (!Number.isFinite(kind.value))
        throw invalid(meter.field, "contains a number that JSON cannot represent");
      count(JSON.stringify(kind.value).length, meter);
      return;
    case "stringValue":
      countText(kind.value, meter);
      return;
    case "listValue":
      deeper(depth, meter);
      count(2 + Math.max(0, kind.value.values.length - 1), meter);
      for (const item of kind.value.values) measure(item, depth + 1, meter);
      return;
    case "structValue": {
      deeper(depth, meter);
      const names = Object.keys(kind.value.fields);
      count(2 + Math.max(0, names.length - 1), meter);
      for (const name of names) {
        countText(name, meter);
        count(1, meter);
        measure(kind.value.fields[name] as Value, depth + 1, meter);
      }
      return;
    }
    default:
      throw invalid(meter.field, "contains a value without a kind");
  }
}

function countText(text: string, meter: Meter): void {
  // Each character takes at least one byte. If the characters alone exceed the limit, no exact count is needed.
  if (text.length > meter.maxBytes) count(text.length, meter);
  count(utf8.encode(JSON.stringify(text)).length, meter);
}

function count(bytes: number, meter: Meter): void {
  meter.bytes += bytes;
  if (meter.bytes > meter.maxBytes) throw exceeded(meter.field, "bytes", meter.maxBytes);
}

function deeper(depth: number, meter: Meter): void {
  if (depth >= MAX_VALUE_DEPTH) throw exceeded(meter.field, "depth", MAX_VALUE_DEPTH);
}

function exceeded(field: string, bound: "bytes" | "depth", max: number): DeputeError {
  const description = bound === "bytes" ? `more than ${max} bytes as JSON` : `nested deeper than ${max}`;
  return new DeputeError(ErrorReason.LIMIT_EXCEEDED, `${field}: ${description}`, {
    metadata: { limit: `${field}.${bound}`, max: String(max) },
    violations: [{ field, description }],
  });
}
