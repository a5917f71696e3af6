import type { CallOptions } from "./call-options.ts";
import { INTERNAL_ERROR, Refusal } from "./rules/refusal.ts";

type Ask = NonNullable<CallOptions["ask"]>;

/**
 * The running calls of a server that may send questions to the calls' clients. Over stdio, a question does not name
 * its call. If one call runs, its client gets the question. If several calls of one MCP session run, they have the
 * same client, and that client gets the question.
 */
export class AskedCalls {
  readonly #asks = new Set<Ask>();
  readonly #isOneClient: boolean;
  /** Whether a call ended while the server could still ask a question for that call. */
  #hasAbandoned = false;

  /** @param isOneClient whether all calls belong to one MCP session */
  constructor(isOneClient: boolean) {
    this.#isOneClient = isOneClient;
  }

  add(ask: Ask | undefined): void {
    if (ask !== undefined) this.#asks.add(ask);
  }

  /**
   * Ends a call.
   *
   * @param isOver true if the server can ask no further question for the call
   */
  end(ask: Ask | undefined, isOver: boolean): void {
    if (ask === undefined) return;
    this.#asks.delete(ask);
    if (!isOver) this.#hasAbandoned = true;
  }

  /** Forgets all calls, because the process has ended. */
  clear(): void {
    this.#asks.clear();
    this.#hasAbandoned = false;
  }

  /**
   * Returns the function that sends a question to the client of the running call; undefined if no call runs.
   *
   * @throws Refusal if calls of several clients run, or if the question may belong to a call that ended
   */
  only(): Ask | undefined {
    const [first] = this.#asks;
    if (this.#isOneClient || (this.#asks.size <= 1 && !this.#hasAbandoned)) return first;
    throw new Refusal(
      INTERNAL_ERROR,
      "the server's question does not name its call, and calls of several clients run",
      {
        reason: "DEPENDENCY_UNAVAILABLE",
        detail: 'set "process": "session" in the configuration of a server that asks its clients',
      },
    );
  }
}
