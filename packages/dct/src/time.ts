const DASH = 0x2d;
const COLON = 0x3a;

/**
 * Parses `YYYY-MM-DDTHH:MM:SSZ` or `YYYY-MM-DDTHH:MM:SS.sssZ` to milliseconds since 1970. Returns undefined for any
 * other text and for a date outside the calendar, e.g. for a text with an offset or with a year 10000.
 */
export function parseTime(text: unknown): number | undefined {
  if (typeof text !== "string") return undefined;
  const hasMs = text.length === 24;
  if (!hasMs && text.length !== 20) return undefined;
  const isMarked =
    text.charCodeAt(4) === DASH &&
    text.charCodeAt(7) === DASH &&
    text.charCodeAt(10) === 0x54 &&
    text.charCodeAt(13) === COLON &&
    text.charCodeAt(16) === COLON &&
    (!hasMs || text.charCodeAt(19) === 0x2e) &&
    text.charCodeAt(text.length - 1) === 0x5a;
  if (!isMarked) return undefined;
  const year = two(text, 0) * 100 + two(text, 2);
  const month = two(text, 5);
  const day = two(text, 8);
  const hour = two(text, 11);
  const minute = two(text, 14);
  const second = two(text, 17);
  const ms = hasMs ? two(text, 20) * 10 + digit(text, 22) : 0;
  // Comparisons with NaN are false, so these conditions also refuse a text with characters other than digits.
  if (!(year >= 0 && month >= 1 && month <= 12 && day >= 1 && day <= daysIn(year, month))) return undefined;
  if (!(hour <= 23 && minute <= 59 && second <= 59 && ms <= 999)) return undefined;
  return ((daysSince1970(year, month, day) * 24 + hour) * 60 + minute) * 60_000 + second * 1000 + ms;
}

/** Formats a time as `2026-02-17T12:00:00.000Z`. Throws RangeError for NaN and outside the years 0 to 9999. */
export function formatTime(ms: number): string {
  const text = new Date(ms).toISOString();
  // A year of more than four digits has a sign, so its text is longer.
  if (text.length !== 24) throw new RangeError(`${text} is outside the years that a token can state`);
  return text;
}

/** Returns the number that two digits form, or NaN. */
function two(text: string, at: number): number {
  return digit(text, at) * 10 + digit(text, at + 1);
}

function digit(text: string, at: number): number {
  const value = text.charCodeAt(at) - 48;
  return value >= 0 && value <= 9 ? value : Number.NaN;
}

function daysIn(year: number, month: number): number {
  if (month === 2) return isLeap(year) ? 29 : 28;
  return month === 4 || month === 6 || month === 9 || month === 11 ? 30 : 31;
}

function isLeap(year: number): boolean {
  return year % 4 === 0 && (year % 100 !== 0 || year % 400 === 0);
}

/**
 * Returns the days since 1970 of a date in the Gregorian calendar. Years are counted from March, so that a leap day is
 * the last day of a year.
 */
function daysSince1970(year: number, month: number, day: number): number {
  const y = month <= 2 ? year - 1 : year;
  const dayOfYear = Math.floor((153 * ((month + 9) % 12) + 2) / 5) + day - 1;
  return 365 * y + Math.floor(y / 4) - Math.floor(y / 100) + Math.floor(y / 400) + dayOfYear - 719_468;
}
