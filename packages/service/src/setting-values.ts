/** The milliseconds in each unit of a duration. */

const UNIT_MS: Record<string, number> = { ms: 1, s: 1000, m: 60_000, h: 3_600_000 };

/**
 * Parses a duration such as `250ms`, `30s`, `5m` or `1h` to milliseconds.
 *
 * @throws Error that states the accepted form
 */
export function parseDuration(text: string): number {
  const match = /^(\d{1,12})(ms|s|m|h)$/.exec(text);
  const unit = UNIT_MS[match?.[2] ?? ""];
  if (match === null || unit === undefined) throw new Error("write a duration like 250ms, 30s, 5m or 1h");
  return Number(match[1]) * unit;
}

/**
 * Parses a whole number in decimal digits, also a negative number.
 *
 * @throws Error that states the accepted form
 */
export function parseInteger(text: string): number {
  const value = Number(text);
  if (!/^-?\d+$/.test(text) || !Number.isSafeInteger(value)) throw new Error("write a whole number");
  return value;
}

const BOOLEANS: Record<string, boolean> = {
  true: true,
  false: false,
  on: true,
  off: false,
  1: true,
  0: false,
};

/**
 * Parses `true`, `on` or `1` to true, and `false`, `off` or `0` to false.
 *
 * @throws Error that states the accepted form
 */
export function parseBoolean(text: string): boolean {
  const value = Object.hasOwn(BOOLEANS, text) ? BOOLEANS[text] : undefined;
  if (value === undefined) throw new Error("write true or false");
  return value;
}

/** Parses words separated by commas. White space around the words and empty words are ignored. */
export function parseList(text: string): string[] {
  return text
    .split(",")
    .map((word) => word.trim())
    .filter((word) => word !== "");
}

/**
 * Parses an http, https, redis, rediss or postgres address, and removes trailing slashes. The empty text stays empty.
 *
 * @throws Error that states the accepted form
 */
export function parseUrl(text: string): string {
  if (text === "") return "";
  if (!/^(https?|rediss?|postgres(ql)?):\/\//.test(text) || !URL.canParse(text))
    throw new Error("write an address like http://host:8080");
  return text.replace(/\/+$/, "");
}

/**
 * Parses one or more addresses, separated by commas. Removes repeated addresses.
 *
 * @throws Error that states the accepted form
 */
export function parseUrls(text: string): string[] {
  const urls = parseList(text).map(parseUrl);
  if (urls.length === 0)
    throw new Error("write an address like http://host:8080, or several, separated by commas");
  return [...new Set(urls)];
}
