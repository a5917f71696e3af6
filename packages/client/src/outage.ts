import { Code, ConnectError } from "@connectrpc/connect";
import { isTransportFailure } from "@depute/core";
import { reasonOf } from "./reasons.ts";
import { delay, FIRST_BACKOFF_MS, LONGEST_BACKOFF_MS } from "./retry.ts";

/**
 * Whether an error means that the platform or the connection failed. An error with a reason is an answer of the
 * platform. Such an error is an outage only if its code is UNAVAILABLE.
 */
export function isOutage(error: unknown): boolean {
  const failure = ConnectError.from(error);
  return failure.code === Code.Unavailable || (reasonOf(error) === undefined && isTransportFailure(failure));
}

/**
 * Waits with a growing backoff between the attempts of one call or stream, until the outage has lasted for the maximum
 * time.
 */
export class Attempts {
  readonly #maxOutageMs: number;
  #backoffMs = FIRST_BACKOFF_MS;
  #failedSinceMs: number | undefined;
  #lastOutage: unknown;

  /** @param maxOutageMs maximum outage to wait for, in milliseconds */
  constructor(maxOutageMs: number) {
    this.#maxOutageMs = maxOutageMs;
  }

  /** Ends the outage, because the platform has answered. The next failure begins a new outage. */
  succeeded(): void {
    this.#failedSinceMs = undefined;
    this.#lastOutage = undefined;
    this.#backoffMs = FIRST_BACKOFF_MS;
  }

  /**
   * Waits before another attempt. If a deadline ends the attempts, the deadline's error gets the last failure as its
   * cause, because the error alone would not say why there was no answer.
   *
   * @throws `error` itself, if it is not an outage, the outage is too long or `signal` aborts
   */
  async failed(error: unknown, signal?: AbortSignal): Promise<void> {
    this.#failedSinceMs ??= Date.now();
    const isTooLong = Date.now() - this.#failedSinceMs + this.#backoffMs > this.#maxOutageMs;
    if (isOutage(error)) this.#lastOutage = error;
    if (isTooLong || hasEnded(signal) || !isOutage(error)) throw this.#explained(error, signal);
    // The wait is random, so that clients that lost the same server do not all return at once.
    await delay(this.#backoffMs * (0.5 + Math.random() / 2), signal);
    if (hasEnded(signal)) throw this.#explained(error, signal);
    this.#backoffMs = Math.min(this.#backoffMs * 2, LONGEST_BACKOFF_MS);
  }

  /** Connect throws the signal's reason in place of `error` when a call's signal has aborted. */
  #explained(error: unknown, signal: AbortSignal | undefined): unknown {
    const reason: unknown = signal?.reason;
    if (reason instanceof ConnectError && reason.code === Code.DeadlineExceeded)
      reason.cause ??= this.#lastOutage;
    return error;
  }
}

function hasEnded(signal: AbortSignal | undefined): boolean {
  return signal?.aborted ?? false;
}
