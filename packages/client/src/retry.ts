import { Code, ConnectError } from "@connectrpc/connect";
import { ErrorInfoSchema } from "@depute/contracts/google/rpc/error_details_pb";
import { pause, systemTimers } from "@depute/core";

/** Milliseconds before the first retry. Each further wait is twice as long, up to LONGEST_BACKOFF_MS. */
export const FIRST_BACKOFF_MS = 100;
export const LONGEST_BACKOFF_MS = 5_000;

/** Repeats a call while the platform is unreachable, until the signal aborts. Only idempotent calls may be passed. */
export async function retryUnavailable<T>(signal: AbortSignal, call: () => Promise<T>): Promise<T> {
  for (let backoff = FIRST_BACKOFF_MS; ; backoff = Math.min(backoff * 2, LONGEST_BACKOFF_MS)) {
    try {
      return await call();
    } catch (error) {
      if (signal.aborted || ConnectError.from(error).code !== Code.Unavailable) throw error;
      await delay(backoff, signal);
    }
  }
}

/**
 * Milliseconds before a call that waits for a review is repeated. Each further wait is twice as long, up to
 * LONGEST_REVIEW_MS.
 */
const FIRST_REVIEW_MS = 500;
const LONGEST_REVIEW_MS = 60_000;

/** Repeats a call while the platform refuses the call with REVIEW_PENDING, until the signal aborts. */
export async function untilDecided<T>(signal: AbortSignal, call: () => Promise<T>): Promise<T> {
  for (let wait = FIRST_REVIEW_MS; ; wait = Math.min(wait * 2, LONGEST_REVIEW_MS)) {
    try {
      return await call();
    } catch (error) {
      if (signal.aborted || !isReviewPending(error)) throw error;
      await delay(wait, signal);
    }
  }
}

function isReviewPending(error: unknown): boolean {
  return ConnectError.from(error)
    .findDetails(ErrorInfoSchema)
    .some(({ domain, reason }) => domain === "depute.dev" && reason === "REVIEW_PENDING");
}

/**
 * Whether an error ends the lease: another worker has the task, the task has ended, or work on it is no longer allowed.
 */
export function endsLease(error: unknown): boolean {
  const { code } = ConnectError.from(error);
  return code === Code.Aborted || code === Code.NotFound || code === Code.PermissionDenied;
}

/** Makes a call that may continue for `graceMs` milliseconds after `ended` aborts. Then the call is aborted too. */
export async function withGrace<T>(
  graceMs: number,
  ended: AbortSignal,
  call: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const late = new AbortController();
  let timer: ReturnType<typeof setTimeout> | undefined;
  const limit = () => {
    timer = setTimeout(() => late.abort(), graceMs);
  };
  if (ended.aborted) limit();
  else ended.addEventListener("abort", limit, { once: true });
  try {
    return await call(late.signal);
  } finally {
    ended.removeEventListener("abort", limit);
    clearTimeout(timer);
  }
}

export function delay(ms: number, signal?: AbortSignal): Promise<void> {
  return pause(ms, systemTimers, signal);
}
