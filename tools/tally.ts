/** How a test run ended. */
export interface Tally {
  passed: number;
  failed: number;
  /** Names of what did not run. */
  skipped: string[];
}

export interface Verdict {
  /** What to print, the last line being "N passed, N failed, N skipped". */
  lines: string[];
  /** Whether the run fails because of what was skipped. */
  fails: boolean;
}

/**
 * What to say about a run. A test that did not run proves nothing, so it is said loudly what was skipped, and where a run is the
 * proof (`CI=true`) it fails.
 */
export function verdict(tally: Tally, isCi: boolean): Verdict {
  const { passed, failed, skipped } = tally;
  const lines = [`${passed} passed, ${failed} failed, ${skipped.length} skipped`];
  if (skipped.length === 0) return { lines, fails: false };
  const consequence = isCi ? "with CI=true that is a failure" : "with CI=true that would be a failure";
  const list = [`*** SKIPPED, and ${consequence}:`, ...skipped.map((name) => `***   ${name}`), ""];
  return { lines: [...list, ...lines], fails: isCi };
}
