/** The delay before a start after two failures in a row, in milliseconds. Each further failure doubles the delay. */
const FIRST_DELAY_MS = 500;
const MAX_DELAY_MS = 30_000;

/** Milliseconds after which a connection counts as stable. The number of failures then starts again at 0. */
export const STABLE_MS = 60_000;

/**
 * Returns the milliseconds for which a server is not started after its failures. After the first failure, the server
 * may start at once, because a single call may have caused the crash.
 *
 * @param failures the number of crashes and failed starts in a row
 */
export function restartDelayMs(failures: number): number {
  return failures < 2 ? 0 : Math.min(FIRST_DELAY_MS * 2 ** (failures - 2), MAX_DELAY_MS);
}
