import type { Presentation } from "./presentation.ts";
import { LIMIT_REACHED, Refusal } from "./rules/refusal.ts";

/** Maximum number of resources that one MCP session or stream watches. */
const MAX_WATCHED = 500;

/** The authority under which a subscription began: the token; absent if there was none. */
interface Watch {
  readonly presentation?: Presentation;
}

export interface WatchedResourcesOptions {
  /** Watches a resource at the server. Rejects if the server refuses. */
  add(uri: string): Promise<void>;
  remove(uri: string): void;
  /** Throws Refusal unless the client may still learn of changes of the resource. */
  admit(uri: string, watch: Watch): Promise<void>;
  /** Notifies the client. */
  notify(uri: string): Promise<void>;
  readonly onError: (error: Error) => void;
}

/** The resources of one MCP session (revisions before 2026-07-28), or of one `subscriptions/listen` stream. */
export class WatchedResources {
  readonly #options: WatchedResourcesOptions;
  readonly #watches = new Map<string, Watch>();

  constructor(options: WatchedResourcesOptions) {
    this.#options = options;
  }

  /**
   * Begins a subscription. A new subscription to a resource replaces the MCP session's earlier subscription to the
   * same resource. Throws Refusal at the limit, or the error of `add`.
   */
  async subscribe(uri: string, watch: Watch): Promise<void> {
    const isNew = !this.#watches.has(uri);
    if (isNew && this.#watches.size >= MAX_WATCHED) {
      const data = {
        reason: "LIMIT_EXCEEDED",
        metadata: { limit: "mcp_session_resources", max: String(MAX_WATCHED) },
      };
      throw new Refusal(LIMIT_REACHED, "the session watches too many resources; unsubscribe from some", data);
    }
    this.#watches.set(uri, watch);
    if (!isNew) return;
    try {
      await this.#options.add(uri);
    } catch (thrown) {
      this.#watches.delete(uri);
      throw thrown;
    }
  }

  unsubscribe(uri: string): void {
    if (this.#watches.delete(uri)) this.#options.remove(uri);
  }

  /** Notifies the client of a changed resource, if the client watches the resource and may still read it. */
  changed(uri: string): void {
    const watch = this.#watches.get(uri);
    if (watch === undefined) return;
    const { admit, notify, onError } = this.#options;
    admit(uri, watch).then(
      () => notify(uri).catch(onError),
      // A client that may no longer read a resource gets no further notification.
      () => this.unsubscribe(uri),
    );
  }

  end(): void {
    for (const uri of [...this.#watches.keys()]) this.unsubscribe(uri);
  }
}
