import type { Timers } from "@depute/core";
import type { Client, McpSubscription } from "@modelcontextprotocol/client";

/** The lists whose changes a server can announce. */
export const LISTS = ["tools", "resources", "prompts"] as const;
export type ListName = (typeof LISTS)[number];

/**
 * Milliseconds of wait before this class requests an ended subscription again. Each further wait is twice as long, up
 * to LAST_WAIT_MS.
 */
const FIRST_WAIT_MS = 1000;
const LAST_WAIT_MS = 60_000;

export interface SubscriptionOptions {
  readonly client: Client;
  readonly timers: Timers;
  /** Called with a list of which the proxy may have missed changes. */
  readonly onGap: (list: ListName) => void;
}

/**
 * Receives a server's list changes while the connection to the server is open. A server of revision 2026-07-28
 * announces changes only to subscribers. Over stdio, a server of an older revision announces them without a
 * subscription. Over HTTP, the proxy does not rely on an older server's announcements, because the proxy may not
 * notice that a stream was lost.
 */
export class Subscription {
  readonly #options: SubscriptionOptions;
  readonly #isStdio: boolean;
  #standing: McpSubscription | undefined;
  #cancelWait: () => void = () => {};
  #hadOne = false;
  #ended = false;

  constructor(options: SubscriptionOptions, isStdio: boolean) {
    this.#options = options;
    this.#isStdio = isStdio;
    const { client } = options;
    if (client.getProtocolEra() === "modern" && this.#announced().length > 0) void this.#keep(FIRST_WAIT_MS);
  }

  /** Whether the server will announce every further change of the list. */
  covers(list: ListName): boolean {
    if (this.#ended) return false;
    if (this.#options.client.getProtocolEra() !== "modern") {
      return this.#isStdio && this.#announced().includes(list);
    }
    return this.#standing?.honoredFilter[`${list}ListChanged`] === true;
  }

  end(): void {
    this.#ended = true;
    this.#cancelWait();
    void this.#standing?.close().catch(() => {});
  }

  #announced(): readonly ListName[] {
    const capabilities = this.#options.client.getServerCapabilities() ?? {};
    return LISTS.filter((list) => capabilities[list]?.listChanged === true);
  }

  async #keep(waitMs: number): Promise<void> {
    const { client, timers, onGap } = this.#options;
    const lists = this.#announced();
    let nextMs = Math.min(waitMs * 2, LAST_WAIT_MS);
    try {
      const standing = await client.listen(
        Object.fromEntries(lists.map((list) => [`${list}ListChanged`, true])),
      );
      this.#standing = standing;
      if (this.#hadOne) for (const list of lists) onGap(list);
      this.#hadOne = true;
      const cause = await standing.closed;
      if (cause === "local") return;
      nextMs = FIRST_WAIT_MS;
    } catch {
      // Subscribes again later, because the server may then accept a subscription that it refuses now.
    } finally {
      this.#standing = undefined;
    }
    if (this.#ended) return;
    this.#cancelWait = timers.after(nextMs, () => void this.#keep(nextMs));
  }
}
