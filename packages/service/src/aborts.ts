import { Code, ConnectError } from "@connectrpc/connect";
import { DeputeError, type Timers } from "@depute/core";

/**
 * Returns the error of a call that ended because `signal` aborted: the signal's reason if the reason is a DeputeError
 * or a ConnectError, otherwise CANCELED.
 */
export function abortError(signal: AbortSignal): Error {
  return abortErrorOf(signal.reason);
}

/** Returns the error that {@link abortError} returns for a signal with this reason. */
export function abortErrorOf(reason: unknown): Error {
  if (reason instanceof DeputeError || reason instanceof ConnectError) return reason;
  return new ConnectError("canceled", Code.Canceled);
}

/**
 * Settles as `promise` does, or rejects as soon as `signal` aborts. So a handler that never settles does not keep its
 * caller waiting.
 */
export function untilAborted<T>(signal: AbortSignal, promise: Promise<T>): Promise<T> {
  if (signal.aborted) {
    promise.catch(() => {});
    return Promise.reject(abortError(signal));
  }
  return new Promise<T>((resolve, reject) => {
    const onAbort = () => reject(abortError(signal));
    signal.addEventListener("abort", onAbort, { once: true });
    promise.then(resolve, reject).finally(() => signal.removeEventListener("abort", onAbort));
  });
}

/**
 * Yields the items of `source`. When `signal` aborts, throws {@link abortError}, and calls the source's `return`
 * without waiting for it.
 */
export function iterateUntilAborted<T>(signal: AbortSignal, source: AsyncIterable<T>): AsyncIterable<T> {
  return {
    [Symbol.asyncIterator]() {
      const iterator = source[Symbol.asyncIterator]();
      const stop = (value?: unknown) =>
        iterator.return?.(value) ?? Promise.resolve({ done: true as const, value });
      return {
        async next() {
          try {
            return await untilAborted(signal, iterator.next());
          } catch (error) {
            if (signal.aborted) stop().catch(() => {});
            throw error;
          }
        },
        return: stop,
      };
    },
  };
}

/**
 * Returns a signal that aborts as soon as one of `signals` does, with the same reason. `release` unlinks the signals.
 */
export function linkSignals(...signals: AbortSignal[]): {
  signal: AbortSignal;
  abort: (reason: unknown) => void;
  release: () => void;
} {
  const controller = new AbortController();
  const onAbort = (event: Event) => controller.abort((event.target as AbortSignal).reason);
  const release = () => {
    for (const signal of signals) signal.removeEventListener("abort", onAbort);
  };
  for (const signal of signals) {
    if (signal.aborted) controller.abort(signal.reason);
    else signal.addEventListener("abort", onAbort, { once: true });
  }
  controller.signal.addEventListener("abort", release, { once: true });
  return { signal: controller.signal, abort: (reason) => controller.abort(reason), release };
}

/**
 * Runs `work` with a signal that aborts when `signal` does, or after `ms` milliseconds.
 *
 * @throws the errors of `work`, such as the reason with which the signal aborted
 */
export async function withTimeout<T>(
  timers: Timers,
  ms: number,
  signal: AbortSignal,
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const link = linkSignals(signal);
  const cancel = timers.after(ms, () =>
    link.abort(new DOMException(`no answer within ${ms} ms`, "TimeoutError")),
  );
  try {
    return await work(link.signal);
  } finally {
    cancel();
    link.release();
  }
}
