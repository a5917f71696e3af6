/** The result of a check (DelegateOS 6.2). */
export interface CheckResult {
  passed: boolean;
  /** The score of the output, from 0 to 1; absent if the check computes no score. */
  score?: number;
  /** An explanation of the result for a person; absent if there is none. */
  details?: string;
}

/**
 * Maximum length of details in characters. Details may quote member names of an untrusted output, so their length is
 * bounded.
 */
export const MAX_DETAILS = 2000;

/**
 * Thrown if a check cannot run, for example because its name is unknown, its parameters are unusable, or its schema
 * recurses endlessly. The output has then not passed, even if the contract has an expectedResult.
 */
export class CheckNotRun extends Error {
  override readonly name = "CheckNotRun";
}

/** Shortens a text to `max` characters without splitting a surrogate pair. */
export function shorten(text: string, max: number = MAX_DETAILS): string {
  return text.length <= max ? text.toWellFormed() : `${text.slice(0, max - 1).toWellFormed()}…`;
}
