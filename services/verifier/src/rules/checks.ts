import { CanonicalError, canonicalJson } from "@depute/core";
import { CheckNotRun, type CheckResult } from "./check-result.ts";
import { subjectOf, valueAt } from "./field-path.ts";

/**
 * The seven checks of DelegateOS 6.2. Each returns a result for every output, except that output_equals throws
 * CheckNotRun for a value without a canonical form. A result has exactly the members that DelegateOS defines for the
 * check, because an output passes only if all members equal those of `expectedResult`. regex_match and json_schema have
 * a score; a failed json_schema also has details.
 */

/** A compiled pattern. */
export interface Matcher {
  test(text: string): boolean;
}

/** Validates a value against a schema. Returns the fault; undefined if the value fits. */
export type Validator = (value: unknown) => string | undefined;

/**
 * `regex_match`: the text contains a match. Only a string can match, because JavaScript would convert an absent field
 * to the text `undefined`.
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

/** `string_length`: the output is a string of `min` to `max` UTF-16 code units, the units of JavaScript's `length`. */
export function stringLength(output: unknown, bounds: Bounds): CheckResult {
  const subject = subjectOf(output, bounds.field);
  return { passed: typeof subject === "string" && within(subject.length, bounds) };
}

/** `array_length`: the output is an array of `min` to `max` items. */
export function arrayLength(output: unknown, bounds: Bounds): CheckResult {
  const subject = subjectOf(output, bounds.field);
  return { passed: Array.isArray(subject) && within(subject.length, bounds) };
}

function within(length: number, { min = 0, max = Number.MAX_SAFE_INTEGER }: Bounds): boolean {
  return length >= min && length <= max;
}

/** `field_exists`: there is a value at every dot path. The value may be null. */
export function fieldExists(output: unknown, fields: readonly string[]): CheckResult {
  return { passed: fields.length > 0 && fields.every((field) => valueAt(output, field) !== undefined) };
}

/** `exit_code`: the member `exitCode` of the output equals the expected number. */
export function exitCode(output: unknown, expected: number): CheckResult {
  if (Array.isArray(output)) return { passed: false };
  return { passed: valueAt(output, "exitCode") === expected };
}

/**
 * `output_equals`: the output and the expected value have the same canonical JSON. So the order of members does not
 * matter, and `1.0` equals `1`.
 */
export function outputEquals(output: unknown, expected: unknown): CheckResult {
  return { passed: sameJson(output, expected) };
}

/**
 * Whether two JSON values have the same canonical form.
 *
 * @throws CheckNotRun if one value has no canonical form, for example because of NaN or a lone surrogate
 */
export function sameJson(a: unknown, b: unknown): boolean {
  try {
    return canonicalJson(a) === canonicalJson(b);
  } catch (error) {
    if (error instanceof CanonicalError) throw new CheckNotRun(`no canonical form: ${error.message}`);
    throw error;
  }
}
