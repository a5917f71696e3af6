import { create } from "@bufbuild/protobuf";
import { DiscoverRequestSchema } from "@depute/contracts/nekte/v1/nekte_pb";
import { ownHeaders } from "@depute/service";
import { jsonRpcErrors } from "../../edge/json-rpc-errors.ts";
import { type Answer, json, type MethodRoute, type Wire, type WireRequest } from "../../edge/route.ts";
import type { WireCall } from "../../edge/wire-call.ts";
import type { WireDeps } from "../../edge/wire-deps.ts";
import { agentCard, PLATFORM_AGENT } from "./documents.ts";
import { type EndpointOptions, endpoint } from "./endpoint.ts";
import { NEKTE_ERRORS } from "./errors.ts";
import { GUIDES } from "./guide.ts";

export interface NekteOptions extends EndpointOptions {
  readonly deps: Pick<WireDeps, "publicUrl">;
  /** Whether callers must present credentials. */
  readonly auth: "bearer" | "none";
  /** Whether the platform serves requests at present. */
  readonly isServing: () => boolean;
}

/** The NEKTE wire: JSON-RPC for all agents together and for each single agent, cards, and the guide. */
export function nekteWire(options: NekteOptions): Wire {
  const all = endpoint(options, "");
  return {
    name: "nekte",
    claims: ["/nekte", "/api/protocol-guide"],
    toError: jsonRpcErrors(NEKTE_ERRORS),
    routes: [
      { kind: "json-rpc", path: "/nekte", endpoint: () => all },
      { kind: "json-rpc", path: "/nekte/{agent}", endpoint: ({ agent = "" }) => endpoint(options, agent) },
      cardRoute("/.well-known/nekte.json", options),
      // Published clients look for a card below the address to which they post calls. So the gateway serves the card
      // there too.
      cardRoute("/nekte/.well-known/nekte.json", options),
      cardRoute("/nekte/{agent}/.well-known/nekte.json", options),
      healthRoute("/nekte/health", options),
      healthRoute("/nekte/{agent}/health", options),
      { method: "GET", path: "/api/protocol-guide", gives: ["text/plain"], answer: async () => GUIDE },
    ],
  };
}

const GUIDE: Answer = {
  kind: "text",
  text: GUIDES.all,
  headers: { "content-type": "text/plain; charset=utf-8", "cache-control": "public, max-age=86400" },
};

/**
 * The health check of the platform and of each agent: 200 if the platform serves requests, otherwise 503. While the
 * platform serves requests, the answer for an unknown agent is 404.
 */
function healthRoute(path: string, { methods, isServing }: NekteOptions): MethodRoute {
  return {
    method: "GET",
    path,
    async answer({ parameters: { agent = "" }, call }: WireRequest) {
      const serves = isServing();
      if (serves && agent !== "") await methods.describe(agent, ownCall(call));
      const status = serves ? "SERVING" : "NOT_SERVING";
      return json({ status, agent: agent || PLATFORM_AGENT }, serves ? 200 : 503);
    },
  };
}

/** Serves an agent card. Cards are public, so the gateway reads the agent in its own name. */
function cardRoute(path: string, { methods, deps, auth }: NekteOptions): MethodRoute {
  return {
    method: "GET",
    path,
    async answer({ parameters: { agent = "" }, call }: WireRequest) {
      const { capabilities } = await methods.discover(agent, create(DiscoverRequestSchema), ownCall(call));
      return json(
        agentCard({
          agent: agent || PLATFORM_AGENT,
          description: agent === "" ? "" : await methods.describe(agent, ownCall(call)),
          endpoint: `${deps.publicUrl}/nekte${agent === "" ? "" : `/${encodeURIComponent(agent)}`}`,
          caps: capabilities.map(({ value }) => value?.id ?? ""),
          auth,
        }),
      );
    },
  };
}

/** Returns the data for a call in the gateway's own name. */
function ownCall(call: WireCall): WireCall {
  const options = { headers: ownHeaders(call.requestId), signal: call.signal };
  return { ...call, asCaller: options, aside: options };
}
