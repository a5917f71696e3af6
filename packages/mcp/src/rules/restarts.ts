/**
 * The delay after two failures in a row, in milliseconds, before the server may start again. Each further failure
 * doubles the delay.
 */
const FIRST_DELAY_MS = 500;
const MAX_DELAY_MS = 30_000;

/** Milliseconds after which a connection counts as stable. The number of failures is then reset to 0. */
export const STABLE_MS = 60_000;

/**
 * Returns the delay in milliseconds before a failed server may start again. After one failure the delay is 0, because a
 * single call may have caused the crash.
 *
 * @param failures the number of crashes and failed starts in a row
 */
export function restartDelayMs(failures: number): number {
  return failures < 2 ? 0 : Math.min(FIRST_DELAY_MS * 2 ** (failures - 2), MAX_DELAY_MS);
}
