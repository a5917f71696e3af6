/** The outcome of a check (DelegateOS 6.2). */
export interface CheckResult {
  passed: boolean;
  /** 0 to 1. */
  score?: number;
  /** For a person. */
  details?: string;
}

/** Longest details, in characters: they may quote member names of a stranger's output. */
export const MAX_DETAILS = 2000;

/**
 * A check could not be carried out: an unknown kind of check, parameters that it cannot use, a schema that recurses
 * without end. Whatever else the contract says, the output has then not passed.
 */
export class CheckNotRun extends Error {
  override readonly name = "CheckNotRun";
}

/** Text that is at most `max` characters, and has no half of a surrogate pair at its end. */
export function shorten(text: string, max: number = MAX_DETAILS): string {
  return text.length <= max ? text.toWellFormed() : `${text.slice(0, max - 1).toWellFormed()}…`;
}
