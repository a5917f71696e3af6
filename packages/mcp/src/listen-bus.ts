import { AsyncLocalStorage } from "node:async_hooks";
import type { ServerEvent, ServerEventBus } from "@modelcontextprotocol/server";
import type { WatchedResources } from "./watched-resources.ts";

type Listener = (event: ServerEvent) => void;

/** The resources of one `subscriptions/listen` request. The subscriptions end with the request's stream. */
interface Opened {
  readonly watched: WatchedResources;
  listener: Listener | undefined;
}

/**
 * The events of one server for its clients' streams (`subscriptions/listen`, revision 2026-07-28). A change of a list
 * reaches all streams. A change of a resource reaches each stream that listens to the resource, if the stream's token
 * still allows the read.
 */
export class ListenBus implements ServerEventBus {
  readonly #listeners = new Map<Listener, Opened | undefined>();
  /** The request whose stream the SDK is opening. */
  readonly #opening = new AsyncLocalStorage<Opened>();

  publish(event: ServerEvent): void {
    for (const listener of this.#listeners.keys()) listener(event);
  }

  subscribe(listener: Listener): () => void {
    const opened = this.#opening.getStore();
    if (opened !== undefined) opened.listener = listener;
    this.#listeners.set(listener, opened);
    return () => {
      if (this.#listeners.delete(listener)) opened?.watched.end();
    };
  }

  /**
   * Answers a request that listens to resources.
   *
   * @param watch creates the subscriptions; `notify` sends the address of a changed resource to the request's stream
   * @param answer opens the stream
   */
  async open(
    watch: (notify: (uri: string) => Promise<void>) => Promise<WatchedResources>,
    answer: () => Promise<Response>,
  ): Promise<Response> {
    let opened: Opened | undefined;
    const watched = await watch(async (uri) => opened?.listener?.({ kind: "resource_updated", uri }));
    opened = { watched, listener: undefined };
    try {
      return await this.#opening.run(opened, answer);
    } finally {
      // Without a listener, the SDK has refused the request, so no stream will end the subscriptions.
      if (opened.listener === undefined) watched.end();
    }
  }

  /** Sends a resource's change to each stream that listens to the resource. */
  resourceChanged(uri: string): void {
    for (const opened of this.#listeners.values()) opened?.watched.changed(uri);
  }
}
