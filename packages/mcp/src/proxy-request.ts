import type { CallOptions } from "./call-options.ts";
import { tokenKey } from "./digest.ts";
import type { Presentation } from "./presentation.ts";
import type { AskedClient } from "./rounds.ts";
import type { Era } from "./rules/task-form.ts";
import type { WatchedResources } from "./watched-resources.ts";

/** A client's request, and the authority that came with it outside of `_delegateos`. */
export interface ProxyRequest extends CallOptions {
  readonly method: string;
  readonly params: Readonly<Record<string, unknown>>;
  /** The token from the HTTP header, the MCP session, or the proxy's own files; absent if there is none. */
  readonly presentation?: Presentation;
  /** The request's connection or MCP session; absent if unknown. It identifies a caller without a token. */
  readonly session?: string;
  /**
   * The subscriptions of the request's MCP session; absent if there is no session, or if the revision has no
   * subscriptions.
   */
  readonly watched?: WatchedResources;
  /**
   * The client to which the server's requests are sent. Present only for revisions before 2026-07-28; later revisions
   * put these requests into the result of a call.
   */
  readonly client?: AskedClient;
  /** The era of the client; absent for an address without tasks. */
  readonly era?: Era;
  /** The principal of the request's login; absent or empty where the server needs no login. */
  readonly login?: string;
  /** Sends the state of a task to the request's MCP session. */
  readonly notifyTask?: (task: Record<string, unknown>) => void;
  /** The client's MCP revision, such as `2025-11-25`; absent if it is unknown. */
  readonly revision?: string;
  /**
   * The HTTP headers of a request of revision 2026-07-28. They must repeat those arguments for which the tool declares
   * a header.
   */
  readonly httpHeaders?: Pick<Headers, "get">;
}

/**
 * Returns the key under which a caller's listed definitions are stored: one for each token or, without a token, for
 * each connection.
 */
export function callerOf({ session = "" }: ProxyRequest, presentation: Presentation | undefined): string {
  return presentation === undefined ? `session ${session}` : `token ${tokenKey(presentation.token)}`;
}
