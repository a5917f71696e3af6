import {
  type DescField,
  type DescMessage,
  type Message,
  type MessageShape,
  ScalarType,
} from "@bufbuild/protobuf";
import type { Path } from "@bufbuild/protobuf/reflect";
import type { Duration, Timestamp } from "@bufbuild/protobuf/wkt";
import { type BrokenRule, brokenRulesByProtovalidate } from "./protovalidate-rules.ts";
import { isSureToKeepRules } from "./quick-rules.ts";

/**
 * Returns the protovalidate rules that a message or a message within it breaks; empty if no rule is broken. The
 * function throws only if a rule itself is faulty.
 */
export function brokenRules<Desc extends DescMessage>(
  schema: Desc,
  message: MessageShape<Desc>,
): BrokenRule[] {
  return isSureToKeepRules(schema, message) ? [] : brokenRulesByProtovalidate(schema, message);
}

/** The earliest google.protobuf.Timestamp, 0001-01-01T00:00:00Z, in seconds since the epoch. */
const FIRST_SECOND = -62_135_596_800n;
/**
 * The first refused time, in seconds since the epoch. The bound is one day before the end of the year 9999. A
 * rounded or added time therefore still has a form in RFC 3339.
 */
const END_SECOND = 253_402_214_400n;
/** The maximum duration, in seconds: a century. The current time plus such a duration still has a form in RFC 3339. */
const MAX_SECONDS = 3_155_760_000n;
const MAX_NANOS = 999_999_999;

const TIMESTAMP = "google.protobuf.Timestamp";
const DURATION = "google.protobuf.Duration";

/**
 * Returns the times and durations that are out of range, in a message and the messages within it. Therefore the
 * protobuf contracts need no rules for these bounds.
 */
export function timesOutOfRange(schema: DescMessage, message: Message): BrokenRule[] {
  const broken: BrokenRule[] = [];
  collectBrokenTimes(schema, message, [], broken);
  return broken;
}

function collectBrokenTimes(schema: DescMessage, message: Message, at: Path, broken: BrokenRule[]): void {
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
        message: "must be in the years 1 to 9999, and before the last day of 9999",
      });
  } else if (type.typeName === DURATION) {
    const { seconds, nanos } = value as Duration;
    const isOneSign = seconds === 0n || nanos === 0 || seconds > 0n === nanos > 0;
    const isInRange = seconds >= -MAX_SECONDS && seconds <= MAX_SECONDS && Math.abs(nanos) <= MAX_NANOS;
    if (!isInRange || !isOneSign)
      broken.push({ field: at, rule: "duration.range", message: "must be a duration of at most a century" });
  } else collectBrokenTimes(type, value, at, broken);
}

const timeFields = new WeakMap<DescMessage, readonly DescField[]>();

/** Returns the fields of a message type that are times, or whose messages contain times. */
function fieldsWithTimes(schema: DescMessage): readonly DescField[] {
  let fields = timeFields.get(schema);
  if (fields === undefined) {
    fields = schema.fields.filter(({ message }) => message !== undefined && holdsTimes(message, new Set()));
    timeFields.set(schema, fields);
  }
  return fields;
}

function holdsTimes(schema: DescMessage, seen: Set<DescMessage>): boolean {
  if (schema.typeName === TIMESTAMP || schema.typeName === DURATION) return true;
  if (seen.has(schema)) return false;
  seen.add(schema);
  return schema.fields.some(({ message }) => message !== undefined && holdsTimes(message, seen));
}
