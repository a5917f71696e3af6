import { type DescField, type DescMessage, type Message, ScalarType } from "@bufbuild/protobuf";
import type { Path } from "@bufbuild/protobuf/reflect";
import type { Duration, Timestamp } from "@bufbuild/protobuf/wkt";
import type { BrokenRule } from "./contract-rules.ts";

/** Seconds since the epoch of 0001-01-01T00:00:00Z, the earliest google.protobuf.Timestamp. */
const FIRST_SECOND = -62_135_596_800n;
/**
 * Seconds since the epoch of 9999-12-31T00:00:00Z, which is out of range, as all after it: what is rounded up, or added to,
 * keeps a form in RFC 3339.
 */
const END_SECOND = 253_402_214_400n;
/** The longest duration, in seconds: a century. What is added to the present keeps a form as well. */
const MAX_SECONDS = 3_155_760_000n;
const MAX_NANOS = 999_999_999;

const TIMESTAMP = "google.protobuf.Timestamp";
const DURATION = "google.protobuf.Duration";

/**
 * The times and durations in a message, and in those within it, that are out of range. No rule of a contract has to repeat
 * these bounds.
 */
export function timesOutOfRange(schema: DescMessage, message: Message): BrokenRule[] {
  const broken: BrokenRule[] = [];
  look(schema, message, [], broken);
  return broken;
}

function look(schema: DescMessage, message: Message, at: Path, broken: BrokenRule[]): void {
  for (const field of fieldsWithTimes(schema)) {
    const local = message as unknown as Record<string, unknown>;
    const chosen = field.oneof && (local[field.oneof.localName] as { case?: string; value?: unknown });
    const value = field.oneof
      ? chosen?.case === field.localName
        ? chosen.value
        : undefined
      : local[field.localName];
    if (value === undefined) continue;
    const { message: type } = field as { message: DescMessage };
    if (field.fieldKind === "list") {
      (value as Message[]).forEach((item, index) => {
        lookAt(type, item, [...at, field, { kind: "list_sub", index }], broken);
      });
    } else if (field.fieldKind === "map") {
      for (const [key, item] of Object.entries(value as Record<string, Message>))
        lookAt(type, item, [...at, field, { kind: "map_sub", key: keyOf(field, key) }], broken);
    } else lookAt(type, value as Message, [...at, field], broken);
  }
}

function keyOf(field: DescField & { fieldKind: "map" }, key: string): string | number | bigint | boolean {
  return field.mapKey === ScalarType.STRING ? key : Number(key);
}

function lookAt(type: DescMessage, value: Message, at: Path, broken: BrokenRule[]): void {
  if (type.typeName === TIMESTAMP) {
    const { seconds, nanos } = value as Timestamp;
    const isInRange = seconds >= FIRST_SECOND && seconds < END_SECOND && nanos >= 0 && nanos <= MAX_NANOS;
    if (!isInRange)
      broken.push({
        field: at,
        rule: "timestamp.range",
        message: "must lie in the years 1 to 9999, before the last day",
      });
  } else if (type.typeName === DURATION) {
    const { seconds, nanos } = value as Duration;
    const isOneSign = seconds === 0n || nanos === 0 || seconds > 0n === nanos > 0;
    const isInRange = seconds >= -MAX_SECONDS && seconds <= MAX_SECONDS && Math.abs(nanos) <= MAX_NANOS;
    if (!isInRange || !isOneSign)
      broken.push({ field: at, rule: "duration.range", message: "must be a duration of at most a century" });
  } else look(type, value, at, broken);
}

const known = new WeakMap<DescMessage, readonly DescField[]>();

/** The fields of a message that are times, or that hold some. */
function fieldsWithTimes(schema: DescMessage): readonly DescField[] {
  let fields = known.get(schema);
  if (fields === undefined) {
    fields = schema.fields.filter(({ message }) => message !== undefined && holdsTimes(message, new Set()));
    known.set(schema, fields);
  }
  return fields;
}

function holdsTimes(schema: DescMessage, seen: Set<DescMessage>): boolean {
  if (schema.typeName === TIMESTAMP || schema.typeName === DURATION) return true;
  if (seen.has(schema)) return false;
  seen.add(schema);
  return schema.fields.some(({ message }) => message !== undefined && holdsTimes(message, seen));
}
