import { type JsonValue, type Message, toJson } from "@bufbuild/protobuf";
import {
  type Duration,
  durationMs,
  type Timestamp,
  timestampDate,
  type Value,
  ValueSchema,
} from "@bufbuild/protobuf/wkt";

/**
 * The plain form of a message: JSON for Value, Date for Timestamp, milliseconds for Duration, numbers for 64-bit
 * integers.
 */
export type Plain<T> = T extends string | number | boolean | undefined
  ? T
  : T extends Value
    ? JsonValue
    : T extends Timestamp
      ? Date
      : T extends Duration
        ? number
        : T extends bigint
          ? number
          : T extends Uint8Array
            ? T
            : T extends readonly (infer Item)[]
              ? Plain<Item>[]
              : T extends object
                ? {
                    [Field in keyof T as Field extends "$typeName" | "$unknown" ? never : Field]: Plain<
                      T[Field]
                    >;
                  }
                : T;

/** Converts a message, or a value within a message, to its plain form. */
export function plain<T>(value: T): Plain<T> {
  return converted(value) as Plain<T>;
}

function converted(value: unknown): unknown {
  if (typeof value === "bigint") return Number(value);
  if (Array.isArray(value)) return value.map(converted);
  if (typeof value !== "object" || value === null || value instanceof Uint8Array) return value;
  switch ((value as Partial<Message>).$typeName) {
    case "google.protobuf.Value":
      return toJson(ValueSchema, value as Value);
    case "google.protobuf.Timestamp":
      return timestampDate(value as Timestamp);
    case "google.protobuf.Duration":
      return durationMs(value as Duration);
  }
  const fields = Object.entries(value).filter(([name]) => name !== "$typeName" && name !== "$unknown");
  return Object.fromEntries(fields.map(([name, each]) => [name, converted(each)]));
}
