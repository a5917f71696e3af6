import type { LoggingMessageNotificationParams, Progress } from "@modelcontextprotocol/client";
import type { Declared } from "./rules/client-capabilities.ts";

/** A log message of a server. */
export type LogMessage = LoggingMessageNotificationParams;

export interface CallOptions {
  readonly signal?: AbortSignal;
  readonly onProgress?: (progress: Progress) => void;
  /** The capabilities of the client that the request comes from; absent if it declared none. */
  readonly clientCapabilities?: Declared;
  /** Receives the server's log messages for this request. `level` is the lowest level that the receiver wants. */
  readonly logs?: { readonly level: string; readonly onLog: (message: LogMessage) => void };
  /** Answers the server's requests during this call. Used only if the server's revision is before 2026-07-28. */
  readonly ask?: (method: string, params: unknown) => Promise<unknown>;
  /**
   * Identifies the login and the MCP session of the call. If each session has its own server process, this text
   * selects the process.
   */
  readonly processOf?: string;
  /** Timeout of the call in milliseconds; if absent, the configured timeout applies. */
  readonly timeoutMs?: number;
  /** Whether the caller accepts a task in place of the result (MCP 2026-07-28, extension for tasks). */
  readonly takesTasks?: boolean;
  /** HTTP headers that repeat arguments of the call for the server. */
  readonly headers?: Readonly<Record<string, string>>;
}
