/** Whether the run only shows that every benchmark works (`npm run bench -- --quick`). Its values mean nothing. */
export const isQuick = process.env.DEPUTE_BENCH_QUICK === "true";

const QUICK_PART = 100;
/**
 * The number by which the benchmarks divide their amounts: 100 in a quick run, otherwise DEPUTE_BENCH_PART, by default
 * 1.
 */
export const PART = isQuick ? QUICK_PART : Number(process.env.DEPUTE_BENCH_PART ?? 1);

/**
 * Returns the number of calls, rounds or records of a measurement: `full` divided by PART, rounded up.
 *
 * @param least the smallest number with which the benchmark works
 */
export function amount(full: number, least = 1): number {
  return Math.max(least, Math.ceil(full / PART));
}

/** Returns the number of rounds that players take in turns; in a quick run 1. */
export const turns = (full: number): number => (isQuick ? 1 : full);
