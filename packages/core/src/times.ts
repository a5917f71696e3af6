import { type Timestamp, timestampFromMs, timestampMs } from "@bufbuild/protobuf/wkt";

// A fraction has at most nine digits, so a long hostile text is refused quickly. No protobuf contract allows more
// digits.
const RFC3339_UTC = /^(\d{4})-(\d{2})-(\d{2})T(\d{2}):(\d{2}):(\d{2})(?:\.(\d{1,9}))?Z$/;

/**
 * Parses an RFC 3339 time of the form `YYYY-MM-DDTHH:MM:SS(.s+)?Z` (at most nine digits of fraction). Refuses days
 * that are not in the calendar, such as 30 February, and a second of 60. Cuts off digits below the millisecond.
 *
 * @returns milliseconds since the Unix epoch; undefined for any other text
 */
export function parseTime(text: string): number | undefined {
  const match = RFC3339_UTC.exec(text);
  if (match === null) return undefined;
  const [year, month, day, hour, minute, second] = match.slice(1, 7).map(Number) as [
    number,
    number,
    number,
    number,
    number,
    number,
  ];
  const millisecond = Number((match[7] ?? "").slice(0, 3).padEnd(3, "0"));
  const date = new Date(0);
  // Date.UTC reads the years 0 to 99 as 1900 to 1999; the setter does not.
  date.setUTCFullYear(year, month - 1, day);
  date.setUTCHours(hour, minute, second, millisecond);
  // Date moves an overflow into the next field, such as 30 February into March. So the parts of an invalid time
  // differ from those of the text.
  const same =
    date.getUTCFullYear() === year &&
    date.getUTCMonth() === month - 1 &&
    date.getUTCDate() === day &&
    date.getUTCHours() === hour &&
    date.getUTCMinutes() === minute &&
    date.getUTCSeconds() === second;
  return same ? date.getTime() : undefined;
}

/** Whether a text is a time that {@link parseTime} accepts. */
export function isTime(text: string): boolean {
  return parseTime(text) !== undefined;
}

const OFFSET_TIME = /^(.{10})[Tt](\d{2}:\d{2}):(\d{2})(\.\d+)?(?:[Zz]|([+-])(\d{2}):(\d{2}))$/;

/**
 * Converts an RFC 3339 date-time with any offset to milliseconds since the Unix epoch. Cuts off digits below the
 * millisecond. A leap second counts as the second after it.
 *
 * @returns undefined for any other text, and for a day or time that the calendar does not have
 */
export function parseOffsetTime(text: string): number | undefined {
  const match = OFFSET_TIME.exec(text);
  if (match === null) return undefined;
  const [, date, minute, second, fraction = "", sign, hours, minutes] = match;
  const isLeap = second === "60";
  const local = parseTime(`${date}T${minute}:${isLeap ? "59" : second}${fraction.slice(0, 4)}Z`);
  if (local === undefined) return undefined;
  const offset = (Number(hours ?? 0) * 60 + Number(minutes ?? 0)) * 60_000;
  return local + (isLeap ? 1_000 : 0) - (sign === "-" ? -offset : offset);
}

const EARLIEST_MS = -62_167_219_200_000; // 0000-01-01T00:00:00Z
const LATEST_MS = 253_402_300_799_999; // 9999-12-31T23:59:59.999Z

/**
 * Formats milliseconds since the Unix epoch as `YYYY-MM-DDTHH:MM:SS.sssZ`.
 *
 * @throws RangeError outside the years 0000 to 9999, or when not a finite number
 */
export function formatTime(ms: number): string {
  if (!(ms >= EARLIEST_MS && ms <= LATEST_MS))
    throw new RangeError(`${ms} ms is not a time that RFC 3339 can express`);
  return new Date(ms).toISOString();
}

/** Converts milliseconds since the Unix epoch to a google.protobuf.Timestamp. */
export function toTimestamp(ms: number): Timestamp {
  return timestampFromMs(ms);
}

/**
 * Converts a google.protobuf.Timestamp to milliseconds since the Unix epoch. Fractions of a millisecond are dropped.
 */
export function fromTimestamp(timestamp: Timestamp): number {
  return timestampMs(timestamp);
}
