import { parseOffsetTime } from "./times.ts";

const DAY_MS = 86_400_000;

/**
 * Whether an RFC 3339 date-time is one that JSON Schema's format `date-time` takes: of the calendar, and a leap second only at
 * the end of a day in UTC. To be asked of texts of the contracts' pattern.
 */
export function isDateTimeFormat(text: string): boolean {
  const time = parseOffsetTime(text);
  if (time === undefined) return false;
  const isLeap = text.slice(17, 19) === "60";
  return !isLeap || ((time % DAY_MS) + DAY_MS) % DAY_MS < 1000;
}

/**
 * Whether an RFC 3986 URI is one that JSON Schema's format `uri` takes as its validators have it: with something between the
 * scheme and a query or fragment, and without a zone in its IPv6 address. To be asked of what is a URI.
 */
export function isUriFormat(uri: string): boolean {
  return /^[^:]+:[^?#]/.test(uri) && !/\[[^\]]*%/.test(uri);
}
