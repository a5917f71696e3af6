import { parseOffsetTime } from "./times.ts";

const DAY_MS = 86_400_000;

/**
 * Whether JSON Schema's format `date-time` accepts an RFC 3339 date-time. The day must exist in the calendar. A leap
 * second is allowed only at the end of a day in UTC. The text must already match the protobuf contract's pattern.
 */
export function isDateTimeFormat(text: string): boolean {
  const time = parseOffsetTime(text);
  if (time === undefined) return false;
  const isLeap = text.slice(17, 19) === "60";
  return !isLeap || ((time % DAY_MS) + DAY_MS) % DAY_MS < 1000;
}

/**
 * Whether validators of JSON Schema accept a URI as the format `uri`. Validators are stricter than RFC 3986.
 * The part between the scheme and a query or fragment must not be empty. An IPv6 address must have no zone.
 *
 * @param uri a valid URI of RFC 3986; this is not checked
 */
export function isUriFormat(uri: string): boolean {
  return /^[^:]+:[^?#]/.test(uri) && !/\[[^\]]*%/.test(uri);
}
