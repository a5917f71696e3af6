import type { JsonObject } from "@bufbuild/protobuf";
import { AgentCardSigner } from "@depute/contracts/depute/registry/v1/agent_service_pb";
import { invalid } from "@depute/core";
import type { Clients } from "../../edge/clients.ts";
import { refusalIn } from "../../edge/fault.ts";
import { jsonRpcErrors } from "../../edge/json-rpc-errors.ts";
import type { MethodRoute, Wire, WireError, WireRequest } from "../../edge/route.ts";
import { callAt, extensionHeaders, statedIn } from "./asked.ts";
import { cardAnswer, cardDocument } from "./documents.ts";
import { endpoint } from "./endpoint.ts";
import { A2A_ERRORS, detailsOf } from "./errors.ts";
import type { A2aMethods } from "./methods.ts";
import { requireVersion, VERSION_PARAMETER } from "./parameters.ts";

const SIGNERS: Readonly<Record<string, AgentCardSigner>> = {
  platform: AgentCardSigner.PLATFORM,
  owner: AgentCardSigner.OWNER,
};

/**
 * The wire of the A2A 0.3 cards. The platform signs each card or, for `signer=owner`, the agent's principal does.
 * (DelegateOS 14.2)
 */
export function cardsWire({ agents }: Pick<Clients, "agents">): Wire {
  return {
    name: "cards",
    claims: ["/agents"],
    routes: [
      {
        method: "GET",
        path: "/agents/{id}/agent-card.json",
        query: ["signer"],
        answer: async ({ parameters: { id = "" }, query, call }) => {
          const card = await agents.getAgentCard({ agentId: id, signer: signerOf(query) }, call.asCaller);
          return { kind: "document", document: cardDocument(card) };
        },
      },
    ],
  };
}

/** @throws DeputeError INVALID_REQUEST for an unknown signer */
function signerOf(query: URLSearchParams): AgentCardSigner {
  const words = query.getAll("signer");
  const [word = "platform"] = words;
  const signer = Object.hasOwn(SIGNERS, word) ? SIGNERS[word] : undefined;
  if (words.length > 1 || signer === undefined) {
    throw invalid("signer", `must occur only once, as one of ${Object.keys(SIGNERS).join(", ")}`);
  }
  return signer;
}

/** The A2A wire: every agent at `/a2a/{agent}`, as JSON-RPC, with its card. (A2A 8.2, 9) */
export function a2aWire(methods: A2aMethods): Wire {
  const rpc = ({ agent = "" }: WireRequest["parameters"], wireRequest: WireRequest) =>
    endpoint(methods, (call) => {
      requireVersion(statedIn(wireRequest));
      return callAt(agent, wireRequest, call);
    });
  return {
    name: "a2a",
    // The A2A wire for HTTP+JSON claims all remaining paths below `/a2a`.
    claims: [],
    toError,
    headersOf: (_path, _parameters, received) => extensionHeaders(received),
    routes: [
      { kind: "json-rpc", path: "/a2a", query: [VERSION_PARAMETER], endpoint: rpc },
      { kind: "json-rpc", path: "/a2a/{agent}", query: [VERSION_PARAMETER], endpoint: rpc },
      cardRoute(methods),
    ],
  };
}

const plainErrors = jsonRpcErrors(A2A_ERRORS);

/** Converts the error of a request whose JSON-RPC call cannot be read. */
function toError(thrown: unknown, requestId: string): WireError {
  const { status, body } = plainErrors(thrown, requestId);
  const { error, ...rest } = body as JsonObject;
  const data = detailsOf(refusalIn(thrown), requestId);
  return { status, body: { ...rest, error: { ...(error as JsonObject), data } } };
}

function cardRoute(methods: A2aMethods): MethodRoute {
  return {
    method: "GET",
    path: "/a2a/{agent}/.well-known/agent-card.json",
    answer: async (wireRequest) => {
      const { agent = "" } = wireRequest.parameters;
      return cardAnswer(await methods.publicCard(agent, callAt(agent, wireRequest, wireRequest.call)));
    },
  };
}
