import { create } from "@bufbuild/protobuf";
import type { HandlerContext } from "@connectrpc/connect";
import {
  type ResolveCapabilityRequest,
  type ResolveCapabilityResponse,
  ResolveCapabilityResponseSchema,
} from "@depute/contracts/depute/registry/v1/discovery_service_pb";
import { DeputeError, ErrorReason } from "@depute/core";
import type { ReadTx } from "@depute/store";
import { agentNotFound, identify, type RegistryContext } from "../context.ts";
import { isLiving } from "../rules/agent.ts";
import { type CapabilityName, readCapabilityName } from "../rules/capability-name.ts";
import { withHash } from "../rules/levels.ts";
import { isOfVersion } from "../rules/version-hash.ts";
import { findAgent } from "../store/agents.ts";
import { type FullOffer, listOffers, loadFull } from "../store/capabilities.ts";

/** Candidates that an ambiguous name is answered with; there may be more. */
const MAX_CANDIDATES = 20;

/** DiscoveryService.ResolveCapability. */
export async function resolveCapability(
  registry: RegistryContext,
  request: ResolveCapabilityRequest,
  context: HandlerContext,
): Promise<ResolveCapabilityResponse> {
  await identify(registry, context);
  const name = readCapabilityName(request.capabilityId, request.agentId);
  const now = registry.clock.now();
  const offer = await registry.store.read((tx) => theOnly(tx, name, now));
  return create(ResolveCapabilityResponseSchema, {
    agentId: offer.agentId,
    agentPrincipal: offer.agentPrincipal,
    capability: withHash(offer.full, offer.digest, registry.hashLength),
    hashMatches: request.hash === "" || isOfVersion(request.hash, offer.digest),
  });
}

async function theOnly(tx: ReadTx, name: CapabilityName, now: number): Promise<FullOffer> {
  const { id, agentId } = name;
  if (agentId !== undefined) {
    const agent = await findAgent(tx, agentId);
    if (agent === undefined || !isLiving(agent, now)) throw agentNotFound(agentId);
  }
  const after = { id: "", agentId: "" };
  const offers = await listOffers(tx, { id, agentId }, { after, limit: MAX_CANDIDATES, now });
  if (offers.length > 1) {
    const candidates = offers.map((offer) => `${offer.agentId}/${id}`).join(",");
    throw new DeputeError(
      ErrorReason.CAPABILITY_AMBIGUOUS,
      `several agents offer ${id}; name one of them: ${candidates}`,
      { metadata: { capability: id, candidates } },
    );
  }
  const [offer] = await loadFull(tx, offers);
  if (offer !== undefined) return offer;
  const metadata: Record<string, string> = { capability: id };
  if (agentId !== undefined) metadata.agent = agentId;
  throw new DeputeError(ErrorReason.CAPABILITY_NOT_FOUND, `no living agent offers ${id}`, { metadata });
}
