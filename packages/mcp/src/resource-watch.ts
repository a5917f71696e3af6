import type { Timers } from "@depute/core";
import type { Client, McpSubscription } from "@modelcontextprotocol/client";
import { LIMIT_REACHED, Refusal } from "./rules/refusal.ts";

/** Maximum number of resources that the clients of one server watch. */
const MAX_WATCHED = 10_000;
/** Milliseconds of wait before this class requests an ended subscription again. */
const AGAIN_MS = 1000;

/**
 * Subscribes to a server's resources for as long as at least one client watches them. On a server of revision
 * 2026-07-28, one subscription covers all resources. When the set of resources changes, a new subscription replaces it.
 * On a server of an earlier revision, each resource has its own subscription.
 */
export class ResourceWatch {
  readonly #client: () => Promise<Client>;
  readonly #timers: Timers;
  /** The number of clients that watch each resource, by its address. */
  readonly #watchers = new Map<string, number>();
  #standing: McpSubscription | undefined;
  /** The latest change of the subscription. A change begins only when the previous change has ended. */
  #changing: Promise<void> = Promise.resolve();
  #cancelWait: () => void = () => {};

  /** @param client returns the connected client of the server; rejects if the server is unreachable */
  constructor(client: () => Promise<Client>, timers: Timers) {
    this.#client = client;
    this.#timers = timers;
  }

  /** Watches a resource for one more client. Throws Refusal at the limit, or the error of the server. */
  async add(uri: string): Promise<void> {
    const watchers = this.#watchers.get(uri) ?? 0;
    if (watchers === 0 && this.#watchers.size >= MAX_WATCHED) {
      const data = {
        reason: "LIMIT_EXCEEDED",
        metadata: { limit: "mcp_watched_resources", max: String(MAX_WATCHED) },
      };
      throw new Refusal(
        LIMIT_REACHED,
        "the server's clients watch too many resources; unsubscribe from some",
        data,
      );
    }
    this.#watchers.set(uri, watchers + 1);
    if (watchers > 0) return;
    try {
      await this.#change((client) => client.subscribeResource({ uri }));
    } catch (thrown) {
      this.#drop(uri);
      throw thrown;
    }
  }

  /**
   * Ends one client's watch of a resource. The method does not await the request to the server, because the client does
   * not need the server's answer.
   */
  remove(uri: string): void {
    if (!this.#drop(uri)) return;
    this.#change((client) => client.unsubscribeResource({ uri })).catch(() => {});
  }

  /** Subscribes again to all watched resources, after the connection or the subscription has ended. */
  restore(): void {
    this.#standing = undefined;
    if (this.#watchers.size === 0) return;
    this.#change(async (client) => {
      for (const uri of this.#watchers.keys()) await client.subscribeResource({ uri });
    }).catch(() => this.#later());
  }

  end(): void {
    this.#cancelWait();
    this.#watchers.clear();
    void this.#standing?.close().catch(() => {});
  }

  /** Removes one watcher of a resource. Returns true if no client watches the resource any more. */
  #drop(uri: string): boolean {
    const watchers = this.#watchers.get(uri) ?? 0;
    if (watchers > 1) this.#watchers.set(uri, watchers - 1);
    else this.#watchers.delete(uri);
    return watchers === 1;
  }

  /** @param old makes the change on a server whose revision is before 2026-07-28 */
  #change(old: (client: Client) => Promise<unknown>): Promise<void> {
    const changed = this.#changing.then(async () => {
      const client = await this.#client();
      if (client.getProtocolEra() === "modern") await this.#replace(client);
      else await old(client);
    });
    this.#changing = changed.catch(() => {});
    return changed;
  }

  async #replace(client: Client): Promise<void> {
    const before = this.#standing;
    const resourceSubscriptions = [...this.#watchers.keys()];
    // The new subscription begins before the old subscription ends, so that no change is missed.
    const standing =
      resourceSubscriptions.length === 0 ? undefined : await client.listen({ resourceSubscriptions });
    this.#standing = standing;
    await before?.close().catch(() => {});
    void standing?.closed.then((cause) => {
      if (cause !== "local" && this.#standing === standing) this.#later();
    });
  }

  #later(): void {
    this.#cancelWait();
    this.#cancelWait = this.#timers.after(AGAIN_MS, () => this.restore());
  }
}
