import { create } from "@bufbuild/protobuf";
import type { HandlerContext } from "@connectrpc/connect";
import { JwkSchema } from "@depute/contracts/asp/v0/agent_card_pb";
import { AgentStatus } from "@depute/contracts/depute/registry/v1/agent_pb";
import {
  AgentCardForm,
  AgentCardSigner,
  type GetAgentCardRequest,
  type GetAgentCardResponse,
  GetAgentCardResponseSchema,
} from "@depute/contracts/depute/registry/v1/agent_service_pb";
import type { CapabilityFull } from "@depute/contracts/nekte/v1/nekte_pb";
import { DeputeError, ErrorReason, toTimestamp } from "@depute/core";
import { sha256Hex } from "@depute/core/sha256";
import { thumbprintOf } from "../card-key.ts";
import { agentNotFound, identify, type RegistryContext, viewerFor } from "../context.ts";
import { verifyEd25519 } from "../ed25519.ts";
import { a2aCard } from "../rules/a2a-card.ts";
import { digestBytes, type StoredAgent } from "../rules/agent.ts";
import { agentCard } from "../rules/agent-card.ts";
import { readOwnerCard } from "../rules/owner-card.ts";
import { findVisible } from "../store/agents.ts";
import { publishedBy } from "../store/capabilities.ts";

/** Implements AgentService.GetAgentCard. */
export async function getAgentCard(
  registry: RegistryContext,
  { agentId: id, viewer: requestedViewer, signer, form }: GetAgentCardRequest,
  context: HandlerContext,
): Promise<GetAgentCardResponse> {
  const viewer = viewerFor(await identify(registry, context), requestedViewer);
  const { agent, published } = await registry.store.read(async (tx) => ({
    agent: await findVisible(tx, id, viewer),
    published: await publishedBy(tx, id),
  }));
  if (agent === undefined || agent.status === AgentStatus.REMOVED) throw agentNotFound(id);
  const card =
    signer === AgentCardSigner.OWNER ? ownersCard(agent) : platformsCard(registry, agent, published, form);
  return create(GetAgentCardResponseSchema, { ...card, updateTime: toTimestamp(agent.updateTime) });
}

/** Returns the card that the platform generates for an agent and signs. */
function platformsCard(
  { cardKey, signedCards, publicUrl, needsCredentials, callsWebhooks }: RegistryContext,
  agent: StoredAgent,
  published: ReadonlyMap<string, CapabilityFull>,
  form: AgentCardForm,
) {
  const capabilities = agent.capabilityIds
    .map((each) => published.get(each))
    .filter((each) => each !== undefined);
  const card =
    form === AgentCardForm.A2A_1_0
      ? a2aCard(agent.record, capabilities, { publicUrl, needsCredentials, callsWebhooks })
      : agentCard(agent.record, capabilities, publicUrl);
  const { text, digest } = signedCards.sign(card);
  return { card: text, digest: digestBytes(digest), signingKey: jwk(cardKey.publicKey, cardKey.kid) };
}

/** Returns the card that the agent's principal signed and registered. */
function ownersCard({ record }: StoredAgent) {
  const card = readOwnerCard(record, verifyEd25519);
  if (card === undefined) {
    throw new DeputeError(
      ErrorReason.AGENT_CARD_NOT_FOUND,
      `the owner of ${record.id} has not registered a signed card`,
      {
        metadata: { agent: record.id },
      },
    );
  }
  const { text, payload } = card;
  return { card: text, digest: digestBytes(sha256Hex(payload)), signingKey: jwk(record.principal) };
}

function jwk(publicKey: string, kid = thumbprintOf(publicKey)) {
  return create(JwkSchema, { kty: "OKP", crv: "Ed25519", x: publicKey, kid, use: "sig", alg: "EdDSA" });
}
