import { isObject, type Timers } from "@depute/core";
import {
  CLIENT_CAPABILITIES_META_KEY,
  PROTOCOL_VERSION_META_KEY,
  SUBSCRIPTION_ID_META_KEY,
  type Transport,
} from "@modelcontextprotocol/client";
import { LISTEN } from "./rules/methods.ts";
import { TASKS_EXTENSION } from "./rules/task-form.ts";
import { UpstreamError } from "./upstream-fault.ts";

/** The revision of MCP in which servers send the states of tasks without being polled. */
const REVISION = "2026-07-28";
/** Milliseconds within which a server acknowledges a request to listen. */
const ACK_MS = 30_000;

type Json = Record<string, unknown>;

/** An acknowledged request to listen to tasks of a server. */
export interface TaskListen {
  /** The ids of the tasks whose states the server will send. */
  readonly taskIds: readonly string[];
  /** Resolves when the server will send no more states. */
  readonly ended: Promise<void>;
}

interface Open {
  readonly onTask: (task: Json) => void;
  readonly onAck: (taskIds: readonly string[]) => void;
  readonly end: (error: UpstreamError) => void;
}

/**
 * The proxy's requests to listen to a server's tasks. The SDK's client cannot listen to tasks. (MCP 2026-07-28,
 * extension io.modelcontextprotocol/tasks)
 */
export class TaskListens {
  readonly #timers: Timers;
  readonly #open = new Map<unknown, Open>();
  #count = 0;

  constructor(timers: Timers) {
    this.#timers = timers;
  }

  /**
   * Listens to tasks until the signal aborts.
   *
   * @param onTask receives each state that the server sends
   * @throws UpstreamError if the server refuses or does not acknowledge the request in time, or if the stream or the
   * call ends earlier
   */
  async begin(
    transport: Transport,
    taskIds: readonly string[],
    onTask: (task: Json) => void,
    signal: AbortSignal,
  ): Promise<TaskListen> {
    const id = `depute-tasks:${++this.#count}`;
    const stream = new AbortController();
    const acknowledged = Promise.withResolvers<readonly string[]>();
    const ended = Promise.withResolvers<void>();
    const end = (error: UpstreamError) => {
      if (!this.#open.delete(id)) return;
      cancelTimer();
      signal.removeEventListener("abort", leave);
      stream.abort();
      acknowledged.reject(error);
      ended.resolve();
    };
    const leave = () => {
      end(new UpstreamError({ kind: "cancelled", detail: "the caller has left" }));
      const cancelled = {
        jsonrpc: "2.0",
        method: "notifications/cancelled",
        params: { requestId: id },
      } as const;
      transport.send(cancelled).catch(() => {});
    };
    const cancelTimer = this.#timers.after(ACK_MS, () => {
      end(
        new UpstreamError({ kind: "timeout", detail: "the server did not acknowledge subscriptions/listen" }),
      );
    });
    const onAck = (granted: readonly string[]) => {
      cancelTimer();
      acknowledged.resolve(granted);
    };
    this.#open.set(id, { onTask, onAck, end });
    signal.addEventListener("abort", leave);
    const lost = (detail: string) => end(new UpstreamError({ kind: "lost", detail }));
    const request = {
      jsonrpc: "2.0",
      id,
      method: LISTEN,
      params: paramsFor(taskIds),
    } as const;
    transport
      .send(request, { requestSignal: stream.signal, onRequestStreamEnd: () => lost("the stream ended") })
      .catch((thrown: unknown) => lost(String(thrown)));
    if (signal.aborted) leave();
    return { taskIds: await acknowledged.promise, ended: ended.promise };
  }

  /** Handles a message of the server if the message belongs to a request to listen; ignores all others. */
  receive(message: unknown): void {
    if (!isObject(message)) return;
    const { id, method, params, error } = message;
    if (method === undefined) {
      const refusal = isObject(error) ? error : undefined;
      this.#open.get(id)?.end(
        refusal === undefined
          ? new UpstreamError({ kind: "lost", detail: "the server ended the stream" })
          : new UpstreamError({
              kind: "error",
              code: Number(refusal.code),
              message: String(refusal.message),
              data: refusal.data,
            }),
      );
      return;
    }
    const { _meta: meta, ...members } = isObject(params) ? params : {};
    const open = isObject(meta) ? this.#open.get(meta[SUBSCRIPTION_ID_META_KEY]) : undefined;
    if (open === undefined || !isObject(meta)) return;
    const { [SUBSCRIPTION_ID_META_KEY]: _, ...rest } = meta;
    if (method === "notifications/subscriptions/acknowledged") open.onAck(grantedIn(members));
    if (method === "notifications/tasks")
      open.onTask({ ...members, ...(Object.keys(rest).length > 0 && { _meta: rest }) });
  }

  /** Ends all requests, because the connection is lost. */
  clear(): void {
    for (const { end } of [...this.#open.values()])
      end(new UpstreamError({ kind: "lost", detail: "the connection to the server is lost" }));
  }
}

function paramsFor(taskIds: readonly string[]): Json {
  const _meta = {
    [PROTOCOL_VERSION_META_KEY]: REVISION,
    [CLIENT_CAPABILITIES_META_KEY]: { extensions: { [TASKS_EXTENSION]: {} } },
  };
  return { _meta, notifications: { taskIds: [...taskIds] } };
}

function grantedIn({ notifications }: Json): readonly string[] {
  const taskIds = isObject(notifications) ? notifications.taskIds : undefined;
  return Array.isArray(taskIds) ? taskIds.filter((id) => typeof id === "string") : [];
}
