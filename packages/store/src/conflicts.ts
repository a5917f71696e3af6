import type { Random, Timers } from "@depute/core";
import { ConflictError } from "./errors.ts";

/** Maximum number of retries after a conflict. */
export const MAX_REPEATS = 5;
/** Maximum wait before the first retry, in milliseconds. The maximum doubles with each retry. */
export const FIRST_WAIT_MS = 5;

/**
 * Runs `write`, and runs it again after a conflict with another transaction. The wait before a retry is random, so that
 * the two transactions seldom conflict again.
 *
 * @param write a function that undoes its own changes before it rejects
 * @throws ConflictError when the last run conflicts too; every other error of `write`, unchanged
 */
export async function againAfterConflicts<T>(
  write: () => Promise<T>,
  { timers, random }: { readonly timers: Timers; readonly random: Random },
): Promise<T> {
  for (let repeats = 0; ; repeats++) {
    try {
      return await write();
    } catch (error) {
      if (!(error instanceof ConflictError) || repeats === MAX_REPEATS) throw error;
    }
    const waitMs = random() * FIRST_WAIT_MS * 2 ** repeats;
    await new Promise<void>((resolve) => void timers.after(waitMs, resolve));
  }
}
