import type { Value } from "@bufbuild/protobuf/wkt";
import { DeputeError, ErrorReason, invalid } from "@depute/core";

/** Bytes that an input or an output may have as JSON. */
export const MAX_VALUE_BYTES = 1024 * 1024;

/** Bytes that a preliminary result may have as JSON. */
export const MAX_PARTIAL_BYTES = 256 * 1024;

/** Bytes that a checkpoint may have as JSON. */
export const MAX_CHECKPOINT_BYTES = 512 * 1024;

/** Bytes that the details of a question may have as JSON. */
export const MAX_QUESTION_BYTES = 32 * 1024;

/** Bytes that an answer to a question may have as JSON. */
export const MAX_ANSWER_BYTES = 64 * 1024;

/** Bytes that all answers of a task may have together, as they are stored; they travel in one assignment. */
export const MAX_ANSWERS_BYTES = 256 * 1024;

/**
 * Deepest nesting of objects and arrays. A level costs up to three levels of protobuf, and readers in every language
 * stop at a hundred.
 */
export const MAX_VALUE_DEPTH = 30;

const utf8 = new TextEncoder();

/**
 * Refuses a value that is no JSON, or larger or deeper than allowed.
 *
 * @param field where it stands in the request, e.g. `draft.input`
 * @throws DeputeError LIMIT_EXCEEDED; INVALID_REQUEST for a value without a kind or a number that JSON cannot say
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
      if (!Number.isFinite(kind.value)) throw invalid(meter.field, "holds a number that JSON cannot say");
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
      throw invalid(meter.field, "holds a value of no kind");
  }
}

function countText(text: string, meter: Meter): void {
  // A text that is too long as it is needs no exact count.
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

function exceeded(field: string, what: "bytes" | "depth", max: number): DeputeError {
  const description = what === "bytes" ? `more than ${max} bytes as JSON` : `nested deeper than ${max}`;
  return new DeputeError(ErrorReason.LIMIT_EXCEEDED, `${field}: ${description}`, {
    metadata: { limit: `${field}.${what}`, max: String(max) },
    violations: [{ field, description }],
  });
}
