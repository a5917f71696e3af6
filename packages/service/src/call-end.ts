import { Code, ConnectError } from "@connectrpc/connect";
import { systemTimers } from "@depute/core";
import { abortErrorOf } from "./abort.ts";

/**
 * The end of one unary call, from whichever side it comes: its deadline, its caller, its answer. Only the first counts.
 * One of these for all of them costs less than signals that are linked to one another, above all when nothing happens.
 */
export class CallEnd {
  /** Aborts when the call is ended before its answer. */
  readonly signal: AbortSignal;
  readonly #controller = new AbortController();
  /** Whether the caller's own time limit is seen to. */
  readonly timed: boolean = false;
  #settled = false;
  #waiting: ((reason: unknown) => void) | undefined;
  #cancelTimer: (() => void) | undefined;

  /** @param timeoutMs milliseconds that the caller allows; it is held to them */
  constructor(timeoutMs?: number) {
    this.signal = this.#controller.signal;
    if (timeoutMs === undefined) return;
    const expire = () => this.abort(new ConnectError("the operation timed out", Code.DeadlineExceeded));
    if (timeoutMs <= 0) expire();
    else this.#cancelTimer = systemTimers.after(timeoutMs, expire);
    this.timed = true;
  }

  /** Ends the call, for a reason that its handler's signal tells. */
  abort(reason: unknown): void {
    if (this.#settled) return;
    this.settle();
    this.#controller.abort(reason);
    this.#waiting?.(abortErrorOf(reason));
  }

  /** Ends the call because its caller went away; does nothing when it has its answer. */
  leave(): void {
    if (!this.#settled) this.abort(new ConnectError("canceled", Code.Canceled));
  }

  /** There is an answer: from now on nothing aborts the call. */
  settle(): void {
    this.#settled = true;
    this.#cancelTimer?.();
  }

  /** Settles as `promise` does, or rejects as soon as the call is ended. There is one who waits. */
  race<T>(promise: Promise<T>): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      promise.then(resolve, reject);
      if (this.signal.aborted) reject(abortErrorOf(this.signal.reason));
      else this.#waiting = reject;
    });
  }
}
