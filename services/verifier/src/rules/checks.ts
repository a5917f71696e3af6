import { CanonicalError, canonicalJson } from "@depute/core";
import { CheckNotRun, type CheckResult } from "./check-result.ts";
import { subjectOf, valueAt } from "./field-path.ts";

/**
 * The seven checks of DelegateOS 6.2. They never throw for an output, whatever it is.
 *
 * A result has the members that the text names for the check and no more (a score for regex_match and json_schema,
 * details for a json_schema that failed), since an `expectedResult` is compared with the whole of it.
 */

/** A pattern that is ready to be searched for. */
export interface Matcher {
  test(text: string): boolean;
}

/** Says what is wrong with a value under a schema; undefined when it fits. */
export type Validator = (value: unknown) => string | undefined;

/**
 * `regex_match`: the pattern is found in the text. Only a string can match; to read other values as text, as a
 * JavaScript RegExp does, would let an absent field match `undefined`.
 */
export function regexMatch(output: unknown, matcher: Matcher, field?: string): CheckResult {
  const subject = subjectOf(output, field);
  const passed = typeof subject === "string" && matcher.test(subject);
  return { passed, score: passed ? 1 : 0 };
}

/** `json_schema`: the output fits the schema. */
export function jsonSchema(output: unknown, validator: Validator): CheckResult {
  const fault = validator(output);
  return fault === undefined ? { passed: true, score: 1 } : { passed: false, score: 0, details: fault };
}

export interface Bounds {
  min?: number | undefined;
  max?: number | undefined;
  field?: string | undefined;
}

/** `string_length`: a string of min to max UTF-16 code units, as JavaScript counts them. */
export function stringLength(output: unknown, bounds: Bounds): CheckResult {
  const subject = subjectOf(output, bounds.field);
  return { passed: typeof subject === "string" && within(subject.length, bounds) };
}

/** `array_length`: an array of min to max items. */
export function arrayLength(output: unknown, bounds: Bounds): CheckResult {
  const subject = subjectOf(output, bounds.field);
  return { passed: Array.isArray(subject) && within(subject.length, bounds) };
}

function within(length: number, { min = 0, max = Number.MAX_SAFE_INTEGER }: Bounds): boolean {
  return length >= min && length <= max;
}

/** `field_exists`: every dot path leads to a value; null is a value. */
export function fieldExists(output: unknown, fields: readonly string[]): CheckResult {
  return { passed: fields.length > 0 && fields.every((field) => valueAt(output, field) !== undefined) };
}

/** `exit_code`: the output's own `exitCode` is the number expected. */
export function exitCode(output: unknown, expected: number): CheckResult {
  if (Array.isArray(output)) return { passed: false };
  return { passed: valueAt(output, "exitCode") === expected };
}

/** `output_equals`: both have the same canonical JSON, so the order of members and `1.0` for `1` make no difference. */
export function outputEquals(output: unknown, expected: unknown): CheckResult {
  return { passed: sameJson(output, expected) };
}

/**
 * Whether two JSON values have the same canonical form.
 *
 * @throws CheckNotRun when one of them has none, NaN or a lone surrogate for instance
 */
export function sameJson(a: unknown, b: unknown): boolean {
  try {
    return canonicalJson(a) === canonicalJson(b);
  } catch (error) {
    if (error instanceof CanonicalError) throw new CheckNotRun(`no canonical form: ${error.message}`);
    throw error;
  }
}
