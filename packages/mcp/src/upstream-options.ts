import type { Clock, Timers } from "@depute/core";
import type { Transport } from "@modelcontextprotocol/client";
import type { LogMessage } from "./call-options.ts";
import type { Declared } from "./rules/client-capabilities.ts";
import type { UpstreamAddress, UpstreamConfig } from "./rules/read-config.ts";
import type { ServerState } from "./server-state.ts";
import type { ListName } from "./subscription.ts";

/** The name of the connection that serves the calls of all clients without capabilities: see Upstream.connectionOf. */
export const SHARED_CONNECTION = "{}";

/** Requests that a server may send to its client. */
export const ASKS = ["sampling/createMessage", "elicitation/create", "roots/list"] as const;
export type Ask = (typeof ASKS)[number];

export interface UpstreamOptions {
  readonly config: UpstreamConfig;
  readonly address: UpstreamAddress;
  /** Called when a resource that `watch` names has changed. */
  readonly onResourceChanged?: (uri: string) => void;
  /** Called when a list of the server has changed: the server announced it, or the proxy found a difference. */
  readonly onListChanged?: (list: ListName) => void;
  /** Called when the server has started, has crashed, or could not be started. */
  readonly onState?: (state: ServerState) => void;
  readonly clock: Clock;
  readonly timers: Timers;
  /**
   * Forwards a request of the server to the client. Absent if several clients share the server, because such a request
   * does not identify its client. Also absent for servers of revision 2026-07-28, which put their requests into the
   * result of a call.
   */
  readonly ask?: (method: Ask, params: unknown) => Promise<unknown>;
  /** Returns the capabilities of the one client to which `ask` sends requests; absent if `ask` is absent. */
  readonly declared?: () => Declared | undefined;
  /** Receives log messages that belong to no request. Absent if several clients share the server. */
  readonly onLog?: (message: LogMessage) => void;
  /**
   * Called with each state of a task that a server of an earlier revision announces. `connection` is the connection on
   * which the task began: see Upstream.connectionOf.
   */
  readonly onTaskStatus?: (task: Readonly<Record<string, unknown>>, connection: string) => void;
  /** Replaces the connection to the server's address in tests. */
  readonly transport?: () => Transport;
}
