import { AgentCardSigner } from "@depute/contracts/depute/registry/v1/agent_service_pb";
import { invalid } from "@depute/core";
import type { Clients } from "../../src/clients.ts";
import type { Wire } from "../../src/edge/route.ts";
import { cardDocument } from "./documents.ts";

const SIGNERS: Readonly<Record<string, AgentCardSigner>> = {
  platform: AgentCardSigner.PLATFORM,
  owner: AgentCardSigner.OWNER,
};

/** The A2A wire: each agent's card, signed by the platform or, for `signer=owner`, by its owner. (DelegateOS 14.2) */
export function a2aWire({ agents }: Pick<Clients, "agents">): Wire {
  return {
    name: "a2a",
    routes: [
      {
        method: "GET",
        path: "/agents/{id}/agent-card.json",
        answer: async ({ parameters: { id = "" }, query, call }) => {
          const card = await agents.getAgentCard({ id, signer: signerOf(query) }, call.asCaller);
          return { kind: "document", document: cardDocument(card) };
        },
      },
    ],
  };
}

/** @throws DeputeError INVALID_REQUEST for a word that names no signer */
function signerOf(query: URLSearchParams): AgentCardSigner {
  const words = query.getAll("signer");
  const [word = "platform"] = words;
  const signer = Object.hasOwn(SIGNERS, word) ? SIGNERS[word] : undefined;
  if (words.length > 1 || signer === undefined) {
    throw invalid("signer", `must be given once, as one of ${Object.keys(SIGNERS).join(", ")}`);
  }
  return signer;
}
