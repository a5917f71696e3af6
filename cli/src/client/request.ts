import type { JsonObject, JsonValue } from "@bufbuild/protobuf";
import { CommandError } from "../exit-codes.ts";
import { parametersOf } from "../parse.ts";
import type { Invocation, Parameter } from "../table/command.ts";
import { textOf } from "./files.ts";

const UNIT_MS: Readonly<Record<string, number>> = {
  ms: 1,
  s: 1000,
  m: 60_000,
  h: 3_600_000,
  d: 86_400_000,
};

/**
 * Builds the request of a command from its arguments and flags.
 *
 * @throws CommandError that names the faulty flag, argument or file
 */
export function requestFrom({ command, values }: Invocation): JsonObject {
  const request: JsonObject = {};
  for (const [name, parameter] of parametersOf(command)) {
    const givenValue = values[name];
    if (parameter.field === undefined || parameter.field === "" || givenValue === undefined) continue;
    const label = name === name.toUpperCase() ? name : `--${name}`;
    const value = Array.isArray(givenValue)
      ? givenValue.map((each: string) => valueFrom(each, parameter, label))
      : typeof givenValue === "boolean"
        ? givenValue
        : valueFrom(givenValue as string, parameter, label);
    putField(request, parameter.field.split("."), value);
  }
  return request;
}

/**
 * Merges the fixed fields of a call with the fields from the command line. If both contain a field, the value from the
 * command line is used.
 */
export function merged(fixed: Readonly<Record<string, unknown>>, request: JsonObject): JsonObject {
  const result = structuredClone(fixed) as JsonObject;
  for (const [name, value] of Object.entries(request)) {
    const presentValue = result[name];
    result[name] = isObject(presentValue) && isObject(value) ? merged(presentValue, value) : value;
  }
  return result;
}

function isObject(value: JsonValue | undefined): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function putField(target: JsonObject, [name = "", ...rest]: readonly string[], value: JsonValue): void {
  if (rest.length === 0) {
    target[name] = value;
    return;
  }
  const inner = target[name];
  const next: JsonObject = isObject(inner) ? inner : {};
  target[name] = next;
  putField(next, rest, value);
}

function valueFrom(text: string, { type, prefix = "" }: Parameter, label: string): JsonValue {
  switch (type) {
    case "int":
      return wholeNumber(text, label);
    case "number":
      if (text.trim() === "" || !Number.isFinite(Number(text))) throw wrong(label, text, "a number");
      return Number(text);
    case "duration":
      return protoDuration(durationMs(text, label));
    case "time":
      return timeOf(text, label);
    case "enum":
      return prefix + text.toUpperCase().replaceAll("-", "_");
    case "json":
      return jsonOf(textOf(text), label);
    default:
      return text;
  }
}

/**
 * Checks that a text is a whole number, and returns the text, because a JSON number cannot represent every 64-bit
 * integer.
 *
 * @throws CommandError that contains `label`, the name of the flag or argument
 */
export function wholeNumber(text: string, label: string): string {
  if (!/^-?\d{1,19}$/.test(text)) throw wrong(label, text, "a whole number");
  return text;
}

/**
 * Returns the milliseconds of a duration such as `250ms`, `30s`, `5m`, `1h`, `7d`.
 *
 * @throws CommandError that contains `label`, the name of the flag or argument
 */
export function durationMs(text: string, label: string): number {
  const [, number = "", unit = ""] = /^(\d{1,12}(?:\.\d{1,3})?)(ms|s|m|h|d)$/.exec(text) ?? [];
  const factor = UNIT_MS[unit];
  if (factor === undefined) throw wrong(label, text, "a duration such as 250ms, 30s, 5m, 1h or 7d");
  return Number(number) * factor;
}

/** Returns a duration in its ProtoJSON form, for example `1.500s`. */
export function protoDuration(ms: number): string {
  return `${(ms / 1000).toFixed(3)}s`;
}

function timeOf(text: string, label: string): string {
  if (text.startsWith("+")) return new Date(Date.now() + durationMs(text.slice(1), label)).toISOString();
  const isTime = /^\d{4}-\d\d-\d\dT\d\d:\d\d/.test(text) && !Number.isNaN(Date.parse(text));
  if (!isTime) throw wrong(label, text, "a time such as 2030-01-31T12:00:00Z, or +1h");
  return new Date(text).toISOString();
}

/** Parses JSON. @throws CommandError that contains `label`, the name of the flag or argument */
export function jsonOf(text: string, label: string): JsonValue {
  try {
    return JSON.parse(text) as JsonValue;
  } catch {
    throw new CommandError(`${label} is not JSON; write JSON, @FILE, or - for standard input`);
  }
}

function wrong(label: string, text: string, expected: string): CommandError {
  return new CommandError(`${label} is ${JSON.stringify(text)}, but must be ${expected}`);
}
