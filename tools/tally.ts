/** The outcome of a test run. */
export interface Tally {
  passed: number;
  failed: number;
  /** The names of the tests that were skipped. */
  skipped: string[];
  /** The names of the tests that passed only when they were repeated. */
  repeated: string[];
}

export interface Verdict {
  /** The lines to print; the last one is "N passed, N failed, N skipped". */
  lines: string[];
  /** Whether skipped tests fail the run. */
  fails: boolean;
}

/**
 * Summarizes a run. The summary lists skipped tests, because a skipped test proves nothing. It also lists the
 * tests that passed only after a repetition, because they have a fault. With `CI=true` skipped tests fail the
 * run.
 */
export function verdict(tally: Tally, isCi: boolean): Verdict {
  const { passed, failed, skipped, repeated } = tally;
  const last = [`${passed} passed, ${failed} failed, ${skipped.length} skipped`];
  const lines =
    repeated.length === 0
      ? last
      : ["*** PASSED ONLY WHEN REPEATED:", ...repeated.map((name) => `***   ${name}`), "", ...last];
  if (skipped.length === 0) return { lines, fails: false };
  const consequence = isCi ? "with CI=true that is a failure" : "with CI=true that would be a failure";
  const list = [`*** SKIPPED, and ${consequence}:`, ...skipped.map((name) => `***   ${name}`), ""];
  return { lines: [...list, ...lines], fails: isCi };
}
