import type { CallOptions } from "@connectrpc/connect";
import {
  AgentCardSigner,
  type GetAgentCardResponse,
} from "@depute/contracts/depute/registry/v1/agent_service_pb";
import { fromTimestamp, invalid } from "@depute/core";
import type { HttpRequest, HttpRoute } from "@depute/service";
import type { Clients } from "../../src/clients.ts";
import type { WireDeps } from "../../src/json-rpc-route.ts";
import { sendValidated, type Validated } from "../../src/validated.ts";
import { wireCall } from "../../src/wire-call.ts";

/** Agents' cards. What one shows depends on who asks, so only the asker's own cache may keep it, and asks again. */
const CACHE_CONTROL = "private, no-cache";

const SIGNERS: Readonly<Record<string, AgentCardSigner>> = {
  platform: AgentCardSigner.PLATFORM,
  owner: AgentCardSigner.OWNER,
};

/** The A2A wire: each agent's card, signed by the platform or, for `signer=owner`, by its owner. (DelegateOS 14.2) */
export function a2aRoutes(
  { agents }: Pick<Clients, "agents">,
  deps: Pick<WireDeps, "publicUrl">,
): HttpRoute[] {
  const read = async (id: string, request: HttpRequest, options: CallOptions) =>
    toDocument(await agents.getAgentCard({ id, signer: signerOf(request) }, options));
  return [
    {
      methods: ["GET"],
      path: "/agents/{id}/agent-card.json",
      async handle(request, response, { id = "" }) {
        const { asCaller } = wireCall(request, response, deps.publicUrl);
        sendValidated(request, response, await read(id, request, asCaller));
      },
    },
  ];
}

function toDocument({ card, digest, updateTime }: GetAgentCardResponse): Validated {
  return {
    bytes: card,
    contentType: "application/json",
    cacheControl: CACHE_CONTROL,
    etag: `"${digest}"`,
    modifiedMs: updateTime === undefined ? 0 : fromTimestamp(updateTime),
  };
}

/** @throws DeputeError INVALID_REQUEST for a word that names none */
function signerOf({ url }: HttpRequest): AgentCardSigner {
  const words = new URLSearchParams(url?.split("?").slice(1).join("?")).getAll("signer");
  const [word = "platform"] = words;
  const signer = Object.hasOwn(SIGNERS, word) ? SIGNERS[word] : undefined;
  if (words.length > 1 || signer === undefined) {
    throw invalid("signer", `must be given once, as one of ${Object.keys(SIGNERS).join(", ")}`);
  }
  return signer;
}
