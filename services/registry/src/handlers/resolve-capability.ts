import { create } from "@bufbuild/protobuf";
import type { HandlerContext } from "@connectrpc/connect";
import {
  type ResolveCapabilityRequest,
  type ResolveCapabilityResponse,
  ResolveCapabilityResponseSchema,
} from "@depute/contracts/depute/registry/v1/discovery_service_pb";
import { DeputeError, ErrorReason } from "@depute/core";
import type { ReadTx } from "@depute/store";
import { agentNotFound, identify, type RegistryContext, viewerFor } from "../context.ts";
import { isLiving } from "../rules/agent.ts";
import { type CapabilityName, readCapabilityName } from "../rules/capability-name.ts";
import { withHash } from "../rules/levels.ts";
import { tokensOf } from "../rules/tokens.ts";
import { isOfVersion } from "../rules/version-hash.ts";
import { findVisible } from "../store/agents.ts";
import { BEGINNING, type FullOffer, listOffers, loadFull, type OfferSight } from "../store/capabilities.ts";

/** Candidates that an ambiguous name is answered with; there may be more. */
const MAX_CANDIDATES = 20;

/** DiscoveryService.ResolveCapability. */
export async function resolveCapability(
  registry: RegistryContext,
  request: ResolveCapabilityRequest,
  context: HandlerContext,
): Promise<ResolveCapabilityResponse> {
  const viewer = viewerFor(await identify(registry, context), request.viewer);
  const name = readCapabilityName(request.capabilityId, request.agentId);
  const offer = await registry.store.read(async (tx) => {
    const sight = { viewer, view: await registry.guard.view(tx) };
    return theOnly(tx, name, sight);
  });
  const capability = withHash(offer.full, offer.digest, registry.hashLength);
  return create(ResolveCapabilityResponseSchema, {
    agentId: offer.agentId,
    agentPrincipal: offer.agentPrincipal,
    capability,
    tokens: tokensOf([{ case: "full", value: capability }]),
    hashMatches: request.hash === "" || isOfVersion(request.hash, offer.digest),
  });
}

async function theOnly(tx: ReadTx, { id, agentId }: CapabilityName, sight: OfferSight): Promise<FullOffer> {
  if (agentId !== undefined) {
    const agent = await findVisible(tx, agentId, sight.viewer);
    if (agent === undefined || !isLiving(agent, sight.view)) throw agentNotFound(agentId);
  }
  const list = { ...sight, after: BEGINNING, limit: MAX_CANDIDATES, toTheEnd: true };
  const { offers } = await listOffers(tx, { id, agentId }, list);
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
  const metadata = { capability: id, ...(agentId !== undefined && { agent: agentId }) };
  throw new DeputeError(ErrorReason.CAPABILITY_NOT_FOUND, `no living agent offers ${id}`, { metadata });
}
