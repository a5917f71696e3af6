const TIME = /^(\d{4})-(\d{2})-(\d{2})T(\d{2}):(\d{2}):(\d{2})(?:\.(\d{3}))?Z$/;

/**
 * Milliseconds since 1970 of `YYYY-MM-DDTHH:MM:SSZ` or `YYYY-MM-DDTHH:MM:SS.sssZ`; undefined for any other text and
 * for a moment that no calendar has. One grammar, because times compared as text or read by a lenient parser sort
 * wrongly: an offset, a leap day that is not, a year 10000.
 */
export function parseTime(text: unknown): number | undefined {
  if (typeof text !== "string") return undefined;
  const match = TIME.exec(text);
  if (match === null) return undefined;
  const ms = Date.parse(text);
  // Date.parse rolls 30 February over into March, and reads 24:00; writing it again shows it.
  if (!Number.isFinite(ms)) return undefined;
  const whole = match[7] === undefined ? text.replace("Z", ".000Z") : text;
  return new Date(ms).toISOString() === whole ? ms : undefined;
}

/** The text of a moment, as `2026-02-17T12:00:00.000Z`. Throws RangeError outside the years 0 to 9999. */
export function formatTime(ms: number): string {
  const text = new Date(ms).toISOString();
  if (!TIME.test(text)) throw new RangeError(`${text} is outside the years that a token can state`);
  return text;
}
