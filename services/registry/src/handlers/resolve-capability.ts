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
import { isLive } from "../rules/agent.ts";
import { type CapabilityName, readCapabilityName } from "../rules/capability-name.ts";
import { withHash } from "../rules/levels.ts";
import { countTokens } from "../rules/tokens.ts";
import { isOfVersion } from "../rules/version-hash.ts";
import { findVisible } from "../store/agents.ts";
import {
  BEGINNING,
  type CapabilityView,
  type FullCapability,
  listCapabilities,
  loadFull,
} from "../store/capabilities.ts";

/** Maximum number of candidates in the response for an ambiguous name. Further candidates are omitted. */
const MAX_CANDIDATES = 20;

/** Implements DiscoveryService.ResolveCapability. */
export async function resolveCapability(
  registry: RegistryContext,
  request: ResolveCapabilityRequest,
  context: HandlerContext,
): Promise<ResolveCapabilityResponse> {
  const viewer = viewerFor(await identify(registry, context), request.viewer);
  const name = readCapabilityName(request.capabilityId, request.agentId);
  const resolved = await registry.store.read(async (tx) => {
    const sight = { viewer, view: await registry.guard.view(tx) };
    return findOnlyCapability(tx, name, sight);
  });
  const capability = withHash(resolved.full, resolved.digest, registry.hashLength);
  return create(ResolveCapabilityResponseSchema, {
    agentId: resolved.agentId,
    agentPrincipal: resolved.agentPrincipal,
    capability,
    tokens: BigInt(countTokens([{ case: "full", value: capability }])),
    hashMatches: request.hash === "" || isOfVersion(request.hash, resolved.digest),
  });
}

async function findOnlyCapability(
  tx: ReadTx,
  { id, agentId }: CapabilityName,
  sight: CapabilityView,
): Promise<FullCapability> {
  if (agentId !== undefined) {
    const agent = await findVisible(tx, agentId, sight.viewer);
    if (agent === undefined || !isLive(agent, sight.view)) throw agentNotFound(agentId);
  }
  const list = { ...sight, after: BEGINNING, limit: MAX_CANDIDATES, toTheEnd: true };
  const { rows } = await listCapabilities(tx, { id, agentId }, list);
  if (rows.length > 1) {
    const candidates = rows.map((capability) => `${capability.agentId}/${id}`).join(",");
    throw new DeputeError(
      ErrorReason.CAPABILITY_AMBIGUOUS,
      `several agents offer ${id}; state one of them as agent_id: ${candidates}`,
      { metadata: { capability: id, candidates } },
    );
  }
  const [capability] = await loadFull(tx, rows);
  if (capability !== undefined) return capability;
  const metadata = { capability: id, ...(agentId !== undefined && { agent: agentId }) };
  throw new DeputeError(
    ErrorReason.CAPABILITY_NOT_FOUND,
    `no live agent that the caller may see offers ${id}`,
    { metadata },
  );
}
