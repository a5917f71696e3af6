/** Whether the run only shows that every benchmark works (`npm run bench -- --quick`). Its values mean nothing. */
export const isQuick = process.env.DEPUTE_BENCH_QUICK === "true";

const QUICK_PART = 100;

/**
 * Returns the number of calls, rounds or records of a measurement; in a quick run a hundredth of it.
 *
 * @param least the smallest number with which the benchmark works
 */
export function amount(full: number, least = 1): number {
  return isQuick ? Math.max(least, Math.ceil(full / QUICK_PART)) : full;
}
