import { admit, type GateOptions } from "./gate.ts";
import type { Presentation } from "./presentation.ts";
import type { ProxyRequest } from "./proxy-request.ts";
import { gatedRequestOf } from "./rules/methods.ts";
import type { UpstreamConfig } from "./rules/read-config.ts";
import { INVALID_PARAMS, METHOD_NOT_FOUND, Refusal } from "./rules/refusal.ts";
import type { Upstream } from "./upstream.ts";

/** The server of a subscription, its configuration, and the dependencies with which the proxy admits the request. */
export interface SubscribeOptions {
  readonly upstream: Upstream;
  readonly config: UpstreamConfig;
  readonly gate: GateOptions;
}

/**
 * Begins or ends an MCP session's subscription to a resource (MCP before 2026-07-28).
 *
 * @throws Refusal; UpstreamError; DeputeError if the authoriser is unavailable
 */
export async function subscribe(
  { upstream, config, gate }: SubscribeOptions,
  { method, watched }: ProxyRequest,
  params: Record<string, unknown>,
  presentation: Presentation | undefined,
  isBegin: boolean,
): Promise<Record<string, unknown>> {
  const { uri } = params;
  const { resources } = (await upstream.description()).capabilities;
  if (watched === undefined || resources?.subscribe !== true)
    throw new Refusal(METHOD_NOT_FOUND, "Method not found", { reason: "UNKNOWN_METHOD" });
  if (typeof uri !== "string" || uri === "")
    throw new Refusal(INVALID_PARAMS, "Invalid params", {
      reason: "INVALID_REQUEST",
      detail: "uri must be a text that is not empty",
    });
  if (!isBegin) {
    watched.unsubscribe(uri);
    return {};
  }
  await admit(gate, gatedRequestOf(method, params, config.map), presentation);
  await watched.subscribe(uri, presentation === undefined ? {} : { presentation });
  return {};
}
