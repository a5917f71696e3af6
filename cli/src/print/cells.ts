import type { JsonObject, JsonValue } from "@bufbuild/protobuf";
import type { Column, ColumnFormat } from "../table/command.ts";
import { oneLine } from "./safe-text.ts";
import type { Cell } from "./table.ts";

const MICROCENTS_PER_USD = 100_000_000;

/** Maximum length of a cell's text, in characters. `-o json` shows the whole text. */
const MAX_CELL = 500;

const COLORS: Readonly<Record<string, Cell["color"]>> = {
  ...colored("green", "completed", "active", "alive", "approved", "published", "succeeded", "true"),
  ...colored("red", "failed", "revoked", "rejected", "expired", "lost", "timed-out", "false"),
  ...colored("yellow", "pending", "suspended", "input-required", "in-review", "suspect", "changes-requested"),
  ...colored("cyan", "running", "accepted"),
  ...colored("gray", "cancelled", "removed", "deprecated", "withdrawn", "replaced", "retired"),
};

function colored(color: Cell["color"], ...words: string[]) {
  return Object.fromEntries(words.map((word) => [word, color]));
}

/**
 * Returns the table cells of an item.
 *
 * @param now milliseconds since the Unix epoch, for ages
 */
export function cellsOf(item: JsonValue, columns: readonly Column[], now: number): Cell[] {
  return columns.map(([, path, format = "text"]) => {
    const text = formatted(valueAt(item, path), format, now);
    const color =
      format.startsWith("enum:") || format === "flag" || format === "text" ? COLORS[text] : undefined;
    return color === undefined ? { text } : { text, color };
  });
}

/**
 * Returns the value at the first of several paths that leads to a value; undefined if no path does. `|` separates the
 * paths.
 */
export function valueAt(item: JsonValue, paths: string): JsonValue | undefined {
  for (const path of paths.split("|")) {
    let value: JsonValue | undefined = item;
    for (const name of path.split(".")) {
      const isObject: boolean = typeof value === "object" && value !== null && !Array.isArray(value);
      value = isObject && Object.hasOwn(value as JsonObject, name) ? (value as JsonObject)[name] : undefined;
    }
    if (value !== undefined) return value;
  }
  return undefined;
}

function formatted(value: JsonValue | undefined, format: ColumnFormat, now: number): string {
  if (format === "count") return String(Array.isArray(value) ? value.length : 0);
  if (format === "number") return oneLine(String(value ?? 0));
  if (format === "flag") return String(value === true);
  if (value === undefined || value === null) return "";
  if (format.startsWith("enum:")) return enumName(String(value), format.slice(5));
  if (format === "age") return ageOf(now - Date.parse(String(value)));
  if (format === "time") return oneLine(String(value).replace(/\.\d+Z$/, "Z"));
  if (format === "usd") return usd(Number(value));
  if (Array.isArray(value) && format === "list") return cellText(value.map(String).join(","));
  return cellText(typeof value === "string" ? value : JSON.stringify(value));
}

/** Returns an amount in dollars, with 2 to 8 decimals. */
export function usd(microcents: number): string {
  return `$${(microcents / MICROCENTS_PER_USD).toFixed(8).replace(/0{1,6}$/, "")}`;
}

/** Returns the word that users write for an enum constant: in lower case, with dashes, and without the prefix. */
export function enumName(constant: string, prefix: string): string {
  const name = constant.startsWith(prefix) ? constant.slice(prefix.length) : constant;
  return oneLine(name.toLowerCase().replaceAll("_", "-"));
}

function cellText(text: string): string {
  return oneLine(text.length > MAX_CELL ? `${text.slice(0, MAX_CELL)}…` : text);
}

const UNITS = [
  ["d", 86_400_000],
  ["h", 3_600_000],
  ["m", 60_000],
] as const;

/** Returns a duration in one unit: `12s`, `5m`, `3h`, `2d`. Empty for NaN. */
export function ageOf(ms: number): string {
  if (Number.isNaN(ms)) return "";
  for (const [unit, size] of UNITS) if (ms >= 2 * size) return `${Math.floor(ms / size)}${unit}`;
  return `${Math.max(0, Math.floor(ms / 1000))}s`;
}
