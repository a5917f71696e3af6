import type { Presentation } from "./presentation.ts";
import type { Declared } from "./rules/client-capabilities.ts";

/** A `subscriptions/listen` request (MCP 2026-07-28). */
export interface ListenRequest {
  readonly params: Readonly<Record<string, unknown>>;
  /** The resources and the tasks to which the request listens. */
  readonly uris: readonly string[];
  readonly taskIds: readonly string[];
  /** The token in the request's headers or, over stdio, in the proxy's own files; undefined if there is none. */
  readonly presented: Presentation | undefined;
  /** The principal of the request's login; empty if the request has no login. */
  readonly login: string;
  readonly declared: Declared | undefined;
}
