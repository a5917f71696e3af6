import type { Timers } from "@depute/core";
import { isObject } from "@depute/core";
import type { CallOptions } from "./call-options.ts";
import { UpstreamError } from "./upstream-fault.ts";

/**
 * Maximum time in milliseconds for which a call waits for its client's answers. It is less than the five minutes
 * after which `fetch` ends a silent stream.
 */
export const HELD_MS = 240_000;
/** Milliseconds from a server's first request in a round until the proxy sends all gathered requests to the client. */
const GATHER_MS = 20;
/** Maximum number of a server's requests in one call. */
const MAX_ASKS = 64;

type Result = Record<string, unknown>;

interface OpenAsk {
  readonly request: { readonly method: string; readonly params: unknown };
  answer(result: unknown): void;
  refuse(error: Error): void;
}

export interface HeldCallOptions {
  readonly timers: Timers;
  /** Maximum time in milliseconds in which the server works on the call between two questions. */
  readonly timeoutMs: number;
  readonly send: (options: Required<Pick<CallOptions, "signal" | "ask" | "timeoutMs">>) => Promise<Result>;
  /** Called once, when the call has ended. */
  readonly onEnd: () => void;
}

/** A call at a server of an earlier revision. The call stays open while its client answers the server's requests. */
export class HeldCall {
  readonly #options: HeldCallOptions;
  readonly #controller = new AbortController();
  readonly #open = new Map<string, OpenAsk>();
  readonly #outcome: Promise<{ readonly result: Result } | { readonly thrown: unknown }>;
  #asked = 0;
  #onAsk = () => {};
  #cancelTimer = () => {};
  #isTimedOut = false;

  constructor(options: HeldCallOptions) {
    this.#options = options;
    const { send, onEnd, timeoutMs } = options;
    this.#work();
    const sent = send({
      signal: this.#controller.signal,
      ask: (method, params) => this.#ask(method, params),
      timeoutMs: MAX_ASKS * (HELD_MS + timeoutMs),
    });
    this.#outcome = sent
      .then(
        (result) => ({ result }),
        (thrown: unknown) => ({ thrown: this.#isTimedOut ? this.#timeout() : thrown }),
      )
      .finally(() => {
        this.#cancelTimer();
        this.#refuseAll("the call has ended");
        onEnd();
      });
  }

  /**
   * Waits for the result of the call, or for requests of the server.
   *
   * @param signal cancels the call if the signal aborts while this method waits
   * @returns the result; undefined if the server has sent requests: see `inputRequests`
   * @throws UpstreamError
   */
  async next(signal: AbortSignal | undefined): Promise<Result | undefined> {
    const cancel = () => this.cancel();
    if (signal?.aborted === true) cancel();
    signal?.addEventListener("abort", cancel);
    try {
      const asked = new Promise<undefined>((resolve) => {
        // A server may send the requests of one round one after the other, so this timer gives further requests time to
        // arrive.
        this.#onAsk = () => void this.#options.timers.after(GATHER_MS, () => resolve(undefined));
        if (this.#open.size > 0) this.#onAsk();
      });
      const outcome = await Promise.race([this.#outcome, asked]);
      if (outcome === undefined) {
        this.#wait();
        return undefined;
      }
      if ("thrown" in outcome) throw outcome.thrown;
      return outcome.result;
    } finally {
      signal?.removeEventListener("abort", cancel);
    }
  }

  /** The server's requests that the client has not answered, by key. */
  get inputRequests(): Record<string, OpenAsk["request"]> {
    return Object.fromEntries([...this.#open].map(([key, { request }]) => [key, request]));
  }

  /** Delivers the client's answers. Unknown keys are ignored; requests without an answer stay open. */
  answer(responses: unknown): void {
    for (const [key, result] of Object.entries(isObject(responses) ? responses : {})) {
      this.#open.get(key)?.answer(result);
      this.#open.delete(key);
    }
    if (this.#open.size === 0) this.#work();
  }

  /** Cancels the call at the server. */
  cancel(): void {
    this.#controller.abort();
  }

  #ask(method: string, params: unknown): Promise<unknown> {
    if (this.#asked >= MAX_ASKS)
      return Promise.reject(new Error(`more than ${MAX_ASKS} requests in one call`));
    this.#asked++;
    const { promise, resolve: answer, reject: refuse } = Promise.withResolvers<unknown>();
    this.#open.set(`request-${this.#asked}`, { request: { method, params }, answer, refuse });
    this.#onAsk();
    return promise;
  }

  /** Starts the timer that limits the server's work. */
  #work(): void {
    this.#limit(this.#options.timeoutMs);
  }

  /** Starts the timer that limits the wait for the client's answers. */
  #wait(): void {
    this.#limit(HELD_MS);
  }

  #limit(ms: number): void {
    this.#cancelTimer();
    this.#cancelTimer = this.#options.timers.after(ms, () => {
      this.#isTimedOut = true;
      this.cancel();
    });
  }

  #refuseAll(message: string): void {
    for (const { refuse } of this.#open.values()) refuse(new Error(message));
    this.#open.clear();
  }

  #timeout(): UpstreamError {
    return new UpstreamError({
      kind: "timeout",
      detail: "the MCP server, or its client, did not answer in time",
    });
  }
}
