import {
  type AuthInfo,
  type McpServerFactory,
  Server,
  type ServerCapabilities,
} from "@modelcontextprotocol/server";
import type { Presentation } from "./presentation.ts";
import type { McpProxy } from "./proxy.ts";
import { INTERNAL_ERROR, Refusal } from "./rules/refusal.ts";

/** The side of a proxy that clients see: a server of the SDK whose every request goes through the proxy. */
export interface DownstreamOptions {
  readonly proxy: McpProxy;
  /**
   * With what authority a request comes, apart from its own `_delegateos`.
   *
   * @param shown what `withPresentation` put beside the request
   */
  readonly presentation: (shown: Presentation | undefined) => Presentation | undefined;
  /** Names the connection or session; absent where requests belong to none. */
  readonly session?: string;
  /** Told of faults that no answer tells. */
  readonly onError: (error: Error) => void;
}

/** A server for one connection, session or request. Throws UpstreamError when the server behind cannot be reached. */
export async function downstream({
  proxy,
  presentation,
  session,
  onError,
}: DownstreamOptions): Promise<Server> {
  const { capabilities, instructions } = await proxy.upstream.about();
  const server = new Server(
    { name: proxy.upstream.name, version: "0.1.0" },
    { capabilities: offered(capabilities), ...(instructions === undefined ? {} : { instructions }) },
  );
  server.onerror = onError;
  server.fallbackRequestHandler = async (request, context) => {
    const { _meta: meta, signal, notify, inputResponses, requestState } = context.mcpReq;
    const token = meta?.progressToken;
    const shown = presentation(context.http?.authInfo?.extra?.[SHOWN] as Presentation | undefined);
    const state = requestState<string>();
    const result = await proxy.handle({
      method: request.method,
      params: {
        ...request.params,
        // Answers to what the server wanted to know, which the SDK takes out (revision 2026-07-28).
        ...(inputResponses === undefined ? {} : { inputResponses }),
        ...(state === undefined ? {} : { requestState: state }),
      },
      signal,
      ...(shown === undefined ? {} : { presentation: shown }),
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
      throw new Refusal(INTERNAL_ERROR, "the MCP server wants input in a way that this revision lacks", {
        reason: "DEPENDENCY_UNAVAILABLE",
      });
    }
    return result;
  };
  // What the SDK does not need for its own work stays here: nothing of a client reaches the server unasked.
  server.fallbackNotificationHandler = async () => {};
  return server;
}

/** The name under which the SDK carries a presentation beside the request that it came with. */
const SHOWN = "depute.dev/presentation";

/** A request's token in the form in which the SDK carries it to where the request is answered. */
export function withPresentation(shown: Presentation | undefined): { authInfo?: AuthInfo } {
  if (shown === undefined) return {};
  return { authInfo: { token: "", clientId: "", scopes: [], extra: { [SHOWN]: shown } } };
}

/** A factory for the SDK's ways of serving. */
export function downstreamFactory(options: DownstreamOptions): McpServerFactory {
  return () => downstream(options);
}

/** What the server offers, without what the proxy does not carry: subscriptions, logs, tasks. */
function offered({ tools, resources, prompts, completions }: ServerCapabilities): ServerCapabilities {
  return {
    ...(tools === undefined ? {} : { tools: { listChanged: true } }),
    ...(resources === undefined ? {} : { resources: { listChanged: true } }),
    ...(prompts === undefined ? {} : { prompts: { listChanged: true } }),
    ...(completions === undefined ? {} : { completions: {} }),
  };
}
