import {
  type AuthInfo,
  type McpServerFactory,
  Server,
  type ServerCapabilities,
} from "@modelcontextprotocol/server";
import type { Presentation } from "./presentation.ts";
import type { McpProxy } from "./proxy.ts";
import { INTERNAL_ERROR, Refusal } from "./rules/refusal.ts";

/** Options of the proxy's connection to its client: an SDK server that passes every request to the proxy. */
export interface DownstreamOptions {
  readonly proxy: McpProxy;
  /**
   * Returns the token for a request whose own parameters have no `_delegateos`.
   *
   * @param attached the presentation that `withPresentation` attached to the request
   */
  readonly presentation: (attached: Presentation | undefined) => Presentation | undefined;
  /** The name of the request's connection or session; absent if there is none. */
  readonly session?: string;
  /** Receives faults that are not reported in any answer. */
  readonly onError: (error: Error) => void;
}

/**
 * Creates a server for one connection, session or request. Throws UpstreamError if the server behind the proxy cannot
 * be reached.
 */
export async function downstream({
  proxy,
  presentation,
  session,
  onError,
}: DownstreamOptions): Promise<Server> {
  const { capabilities, instructions } = await proxy.upstream.description();
  const server = new Server(
    { name: proxy.upstream.name, version: "0.1.0" },
    { capabilities: capabilitiesOf(capabilities), ...(instructions === undefined ? {} : { instructions }) },
  );
  server.onerror = onError;
  server.fallbackRequestHandler = async (request, context) => {
    const { _meta: meta, signal, notify, inputResponses, requestState } = context.mcpReq;
    const token = meta?.progressToken;
    const attached = presentation(context.http?.authInfo?.extra?.[SHOWN] as Presentation | undefined);
    const state = requestState<string>();
    const result = await proxy.handle({
      method: request.method,
      params: {
        ...request.params,
        // Restores the answers to the server's input requests, because the SDK removes them from the parameters
        // (revision 2026-07-28).
        ...(inputResponses === undefined ? {} : { inputResponses }),
        ...(state === undefined ? {} : { requestState: state }),
      },
      signal,
      ...(attached === undefined ? {} : { presentation: attached }),
      ...(session === undefined ? {} : { session }),
      ...(token === undefined
        ? {}
        : {
            onProgress: (progress) => {
              const params = { ...progress, progressToken: token };
              notify({ method: "notifications/progress", params }).catch(onError);
            },
          }),
    });
    if (result.resultType === "input_required" && context.mcpReq.envelope === undefined) {
      throw new Refusal(INTERNAL_ERROR, "the MCP server requests input in a form that this revision lacks", {
        reason: "DEPENDENCY_UNAVAILABLE",
      });
    }
    return result;
  };
  // Drops notifications that the SDK does not handle, because the proxy forwards none of them to the server.
  server.fallbackNotificationHandler = async () => {};
  return server;
}

/** The key under which the SDK stores a presentation beside the request. */
const SHOWN = "depute.dev/presentation";

/** Attaches a request's token so that the SDK passes it to the request's handler. */
export function withPresentation(presentation: Presentation | undefined): { authInfo?: AuthInfo } {
  if (presentation === undefined) return {};
  return { authInfo: { token: "", clientId: "", scopes: [], extra: { [SHOWN]: presentation } } };
}

/** Returns a factory of servers, for the SDK's transports. */
export function downstreamFactory(options: DownstreamOptions): McpServerFactory {
  return () => downstream(options);
}

/** Returns the server's capabilities without those that the proxy does not support: subscriptions, logs, tasks. */
function capabilitiesOf({ tools, resources, prompts, completions }: ServerCapabilities): ServerCapabilities {
  return {
    ...(tools === undefined ? {} : { tools: { listChanged: true } }),
    ...(resources === undefined ? {} : { resources: { listChanged: true } }),
    ...(prompts === undefined ? {} : { prompts: { listChanged: true } }),
    ...(completions === undefined ? {} : { completions: {} }),
  };
}
