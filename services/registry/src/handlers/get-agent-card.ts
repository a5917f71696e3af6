import { create } from "@bufbuild/protobuf";
import type { HandlerContext } from "@connectrpc/connect";
import { JwkSchema } from "@depute/contracts/asp/v0/agent_card_pb";
import { AgentStatus } from "@depute/contracts/depute/registry/v1/agent_pb";
import {
  type GetAgentCardRequest,
  type GetAgentCardResponse,
  GetAgentCardResponseSchema,
} from "@depute/contracts/depute/registry/v1/agent_service_pb";
import { sha256Hex } from "@depute/core/sha256";
import { agentNotFound, identify, type RegistryContext, viewerFor } from "../context.ts";
import { agentCard, signCard } from "../rules/agent-card.ts";
import { findVisible } from "../store/agents.ts";
import { publishedBy } from "../store/capabilities.ts";

/** AgentService.GetAgentCard. */
export async function getAgentCard(
  registry: RegistryContext,
  { id, viewer: named }: GetAgentCardRequest,
  context: HandlerContext,
): Promise<GetAgentCardResponse> {
  const viewer = viewerFor(await identify(registry, context), named);
  const { agent, published } = await registry.store.read(async (tx) => ({
    agent: await findVisible(tx, id, viewer),
    published: await publishedBy(tx, id),
  }));
  if (agent === undefined || agent.status === AgentStatus.REMOVED) throw agentNotFound(id);
  const capabilities = agent.capabilityIds
    .map((each) => published.get(each))
    .filter((each) => each !== undefined);
  const { cardKey } = registry;
  const { text, digest } = signCard(
    agentCard(agent.record, capabilities, registry.publicUrl),
    cardKey,
    sha256Hex,
  );
  return create(GetAgentCardResponseSchema, {
    card: text,
    digest,
    signingKey: create(JwkSchema, {
      kty: "OKP",
      crv: "Ed25519",
      x: cardKey.publicKey,
      kid: cardKey.kid,
      use: "sig",
      alg: "EdDSA",
    }),
  });
}
