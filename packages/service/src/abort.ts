import { Code, ConnectError } from "@connectrpc/connect";
import { DeputeError } from "@depute/core";

/** What a call that a signal ended throws: the signal's own refusal, else that the caller gave up. */
export function abortError(signal: AbortSignal): Error {
  return abortErrorOf(signal.reason);
}

/** The same for a signal's reason. */
export function abortErrorOf(reason: unknown): Error {
  if (reason instanceof DeputeError || reason instanceof ConnectError) return reason;
  return new ConnectError("canceled", Code.Canceled);
}

/** Settles as `promise` does, or rejects as soon as `signal` aborts: a handler that hangs does not hold its caller. */
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

/** The items of `source` until `signal` aborts; the source is then told to stop, but not waited for. */
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

/** A signal that aborts with the first of `signals`, by its reason; `release` forgets them. */
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
