/** Maximum number of attempts to send one message to an address that a caller gave. */
export const MAX_ATTEMPTS = 12;

const FIRST_MS = 1_000;
const LONGEST_MS = 3_600_000;

/**
 * Returns the wait after a number of failed attempts, in milliseconds; undefined after the last attempt. The wait
 * doubles each time up to an hour, and `chance` shortens it by up to half.
 *
 * @param chance a random number from 0 to 1
 */
export function backoffMs(attempts: number, chance: number): number | undefined {
  if (attempts >= MAX_ATTEMPTS) return undefined;
  const most = Math.min(FIRST_MS * 2 ** Math.max(0, attempts - 1), LONGEST_MS);
  return Math.round(most * (1 - chance / 2));
}
