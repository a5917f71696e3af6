import { isObject } from "@depute/core";
import type { JSONRPCMessage } from "@modelcontextprotocol/server";
import { watchedResources } from "./downstream.ts";
import type { Presentation } from "./presentation.ts";
import type { McpProxy } from "./proxy.ts";
import { declaredIn } from "./rules/client-capabilities.ts";
import {
  ACKNOWLEDGED,
  acknowledged,
  endOfListen,
  resourceNotification,
  subscriptionOf,
  taskNotification,
} from "./rules/listen-messages.ts";
import { listenedResources, listenedTaskIds } from "./rules/listened.ts";
import { LIMIT_REACHED, Refusal } from "./rules/refusal.ts";
import { abandon, type FollowedTasks } from "./task-streams.ts";
import type { WatchedResources } from "./watched-resources.ts";

/** Maximum number of open `subscriptions/listen` requests for resources or tasks of one client. */
const MAX_OPEN = 100;

type Json = Record<string, unknown>;

/** The resources and tasks of a `subscriptions/listen` request. */
interface Requested {
  readonly params: Json;
  readonly uris: readonly string[];
  readonly taskIds: readonly string[];
}

/** An open request `subscriptions/listen`. */
interface Open {
  readonly stop: AbortController;
  /** Absent until `#admit` has admitted the request. */
  admitted?: {
    readonly uris: readonly string[];
    readonly watched: WatchedResources;
    readonly tasks: FollowedTasks<Json>;
  };
}

export interface StdioListensOptions {
  readonly proxy: () => McpProxy;
  /** Returns the token for requests whose parameters contain no `_delegateos`; undefined if there is none. */
  readonly presentation: () => Presentation | undefined;
  /** Sends a message to the client. */
  readonly send: (message: JSONRPCMessage) => Promise<void>;
  /** Passes a message of the client to the SDK. */
  readonly deliver: (message: JSONRPCMessage) => void;
  readonly onError: (error: Error) => void;
}

/**
 * Serves `subscriptions/listen` for resources and tasks to one client over stdio. (MCP 2026-07-28.) The SDK itself
 * serves the changes of lists. It does not support tasks, and would serve resources without a check of the token.
 */
export class StdioListens {
  readonly #options: StdioListensOptions;
  readonly #open = new Map<unknown, Open>();

  constructor(options: StdioListensOptions) {
    this.#options = options;
  }

  /** Handles a message of the client. Passes to the SDK those parts of the message that the SDK serves. */
  receive(message: JSONRPCMessage): void {
    const { method, id, params } = message as Json;
    if (method === "notifications/cancelled" && isObject(params)) this.#end(params.requestId);
    const request = id === undefined || !isObject(params) ? {} : params;
    let uris: string[];
    let taskIds: string[];
    try {
      [uris, taskIds] = [listenedResources(method, request), listenedTaskIds(method, request)];
      if (uris.length > 0 || taskIds.length > 0) this.#assertRoom();
    } catch (thrown) {
      this.#refuse(id, thrown);
      return;
    }
    if (uris.length === 0 && taskIds.length === 0) this.#options.deliver(message);
    else this.#begin(message, id, { params: request, uris, taskIds });
  }

  #begin(message: JSONRPCMessage, id: unknown, request: Requested): void {
    const open: Open = { stop: new AbortController() };
    this.#open.set(id, open);
    this.#admit(open, id, request).then(
      () => {
        // The SDK serves the other parts of the request, and acknowledges it.
        if (this.#open.get(id) === open) this.#options.deliver(withoutResources(message));
      },
      (thrown: unknown) => {
        this.#end(id);
        this.#refuse(id, thrown);
      },
    );
  }

  /**
   * Returns the SDK's message for the client. Adds to the acknowledgement of a request the resources and tasks that
   * this class serves.
   */
  sent(message: JSONRPCMessage): JSONRPCMessage {
    const json = message as Json;
    if (json.id !== undefined && json.method === undefined) this.#end(json.id);
    if (json.method !== ACKNOWLEDGED) return message;
    const id = subscriptionOf(json);
    const open = this.#open.get(id);
    if (open?.admitted === undefined) return message;
    const { uris, tasks } = open.admitted;
    const added = {
      ...(uris.length > 0 && { resourceSubscriptions: [...uris] }),
      ...(tasks.taskIds.length > 0 && { taskIds: [...tasks.taskIds] }),
    };
    const { message: shown, isOnly } = acknowledged(json, added);
    // The states follow the acknowledgement, because sending keeps the order of messages.
    queueMicrotask(() => this.#follow(id, open, tasks, isOnly && uris.length === 0));
    return shown as unknown as JSONRPCMessage;
  }

  /** Notifies the client of a changed resource if an open request listens to the resource. */
  resourceChanged(uri: string): void {
    for (const { admitted } of this.#open.values()) admitted?.watched.changed(uri);
  }

  /** Ends all requests, because the client has disconnected. */
  close(): void {
    for (const id of [...this.#open.keys()]) this.#end(id);
  }

  async #admit(open: Open, id: unknown, { params, uris, taskIds }: Requested): Promise<void> {
    const { proxy, presentation: held, onError } = this.#options;
    const presented = held();
    const declared = declaredIn(params);
    const request = { params, uris, taskIds, presented, login: "", declared };
    const { presentation, tasks } = await proxy().admitListen(request);
    const notify = (uri: string) => this.#send(resourceNotification(id, uri));
    const watched = watchedResources(proxy(), notify, onError);
    try {
      for (const uri of uris)
        await watched.subscribe(uri, presentation === undefined ? {} : { presentation });
    } catch (thrown) {
      watched.end();
      abandon(tasks);
      throw thrown;
    }
    if (open.stop.signal.aborted) {
      watched.end();
      abandon(tasks);
      return;
    }
    open.admitted = { uris, watched, tasks };
  }

  /**
   * Passes the states of tasks to the client until the request ends.
   *
   * @param endsWithTasks whether the request listens only to tasks. If so, it ends when no further state of its tasks
   * can come
   */
  #follow(id: unknown, { stop }: Open, tasks: FollowedTasks<Json>, endsWithTasks: boolean): void {
    const onTask = (_: string, task: Json) =>
      void this.#send(taskNotification(id, task)).catch(this.#options.onError);
    const ended = tasks.taskIds.length === 0 ? Promise.resolve() : tasks.follow(onTask, stop.signal);
    void ended.catch(this.#options.onError).then(() => {
      if (endsWithTasks && !stop.signal.aborted) this.#complete(id);
    });
  }

  /** Ends a request after the last state of its tasks. */
  #complete(id: unknown): void {
    this.#end(id);
    const params = { requestId: id as string };
    this.#options.deliver({ jsonrpc: "2.0", method: "notifications/cancelled", params });
    this.#send(endOfListen(id)).catch(this.#options.onError);
  }

  #end(id: unknown): void {
    const open = this.#open.get(id);
    if (open === undefined) return;
    this.#open.delete(id);
    open.stop.abort();
    open.admitted?.watched.end();
  }

  #assertRoom(): void {
    if (this.#open.size < MAX_OPEN) return;
    throw new Refusal(LIMIT_REACHED, "Limit exceeded", {
      reason: "LIMIT_EXCEEDED",
      detail: "too many subscriptions/listen requests are open; cancel one",
      metadata: { limit: "mcp_listens", max: String(MAX_OPEN) },
    });
  }

  #refuse(id: unknown, thrown: unknown): void {
    const { onError } = this.#options;
    if (thrown instanceof Refusal) {
      const { code, message, data } = thrown;
      this.#send({ jsonrpc: "2.0", id, error: { code, message, data } }).catch(onError);
    } else onError(thrown as Error);
  }

  #send(message: Readonly<Json>): Promise<void> {
    return this.#options.send(message as unknown as JSONRPCMessage);
  }
}

/**
 * Returns a `subscriptions/listen` request without its resource subscriptions. `StdioListens` serves those, because the
 * SDK would serve them without a check of the token.
 */
function withoutResources(message: JSONRPCMessage): JSONRPCMessage {
  const { params, ...rest } = message as Json;
  const { notifications, ...others } = params as Json;
  const { resourceSubscriptions, ...lists } = notifications as Json;
  return { ...rest, params: { ...others, notifications: lists } } as unknown as JSONRPCMessage;
}
