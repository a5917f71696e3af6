import { Code, ConnectError } from "@connectrpc/connect";
import { ErrorInfoSchema } from "@depute/contracts/google/rpc/error_details_pb";

/** How long to wait before a call is tried again, milliseconds: doubled each time, up to the second. */
export const FIRST_BACKOFF_MS = 100;
export const LONGEST_BACKOFF_MS = 5_000;

/**
 * Tries again while the platform is away. Every call here is idempotent, and a lease that was lost meanwhile ends it.
 */
export async function insist<T>(signal: AbortSignal, call: () => Promise<T>): Promise<T> {
  for (let backoff = FIRST_BACKOFF_MS; ; backoff = Math.min(backoff * 2, LONGEST_BACKOFF_MS)) {
    try {
      return await call();
    } catch (error) {
      if (signal.aborted || ConnectError.from(error).code !== Code.Unavailable) throw error;
      await delay(backoff, signal);
    }
  }
}

/** How long to wait before a person is looked for again, milliseconds: doubled each time, up to the second. */
const FIRST_REVIEW_MS = 500;
const LONGEST_REVIEW_MS = 60_000;

/** Calls again until the person has decided whom the call's answer waits for. */
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

/** Another worker has the task, it has ended, or it may no longer be worked on. */
export function endsLease(error: unknown): boolean {
  const { code } = ConnectError.from(error);
  return code === Code.Aborted || code === Code.NotFound || code === Code.PermissionDenied;
}

/** Makes a call that may still take `graceMs` milliseconds once `ended` has aborted; then it is called off. */
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
  return new Promise((resolve) => {
    if (signal?.aborted) return resolve();
    const timer = setTimeout(done, Math.max(0, ms));
    signal?.addEventListener("abort", done, { once: true });
    function done() {
      clearTimeout(timer);
      signal?.removeEventListener("abort", done);
      resolve();
    }
  });
}
