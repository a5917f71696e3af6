import type { Clock } from "@depute/core";
import { restartDelayMs, STABLE_MS } from "./rules/restarts.ts";

/** The state of a server: `up` after a start, `failed` after a crash or a failed start. */
export type ServerState =
  | { readonly kind: "up" }
  /**
   * `failures` counts crashes and failed starts in a row. The next start is possible after `retryAfterMs`
   * milliseconds.
   */
  | { readonly kind: "failed"; readonly failures: number; readonly retryAfterMs: number };

/** Tracks the starts and failures of one server, and delays its next start after failures. */
export class ServerStarts {
  readonly #clock: Clock;
  readonly #onState: ((state: ServerState) => void) | undefined;
  #failures = 0;
  #startedMs = 0;
  #notBeforeMs = Number.NEGATIVE_INFINITY;

  constructor(clock: Clock, onState: ((state: ServerState) => void) | undefined) {
    this.#clock = clock;
    this.#onState = onState;
  }

  /** The number of crashes and failed starts in a row. */
  get failures(): number {
    return this.#failures;
  }

  /** Returns the milliseconds until the server may be started; 0 if it may be started immediately. */
  get waitMs(): number {
    return Math.max(0, Math.ceil(this.#notBeforeMs - this.#clock.monotonic()));
  }

  started(): void {
    this.#startedMs = this.#clock.monotonic();
    this.#onState?.({ kind: "up" });
  }

  crashed(): void {
    if (this.#clock.monotonic() - this.#startedMs >= STABLE_MS) this.#failures = 0;
    this.notStarted();
  }

  notStarted(): void {
    this.#failures++;
    const retryAfterMs = restartDelayMs(this.#failures);
    this.#notBeforeMs = this.#clock.monotonic() + retryAfterMs;
    this.#onState?.({ kind: "failed", failures: this.#failures, retryAfterMs });
  }
}
