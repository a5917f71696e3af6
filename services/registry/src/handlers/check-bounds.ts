import type { Agent } from "@depute/contracts/depute/registry/v1/agent_pb";
import { DeputeError, ErrorReason } from "@depute/core";
import type { Identity } from "@depute/service";
import type { ReadTx } from "@depute/store";
import type { RegistryContext } from "../context.ts";
import type { StoredAgent } from "../rules/agent.ts";
import { widenings } from "../rules/bounds.ts";
import { isBoundsChange } from "../rules/bounds-change.ts";
import { baseOf } from "../rules/registration.ts";
import type { Widening } from "../rules/widening.ts";
import { otherManifests } from "../store/bound-agents.ts";

/**
 * Whether the caller is a bounds operator and the request changes only the bounds of a registered agent. Such a change
 * needs no proof of the agent's key.
 */
export function isBoundsOperatorChange(
  { boundsOperators }: RegistryContext,
  identity: Identity,
  agent: Agent,
  storedAgent: StoredAgent | undefined,
): boolean {
  return (
    storedAgent !== undefined &&
    boundsOperators.includes(identity) &&
    isBoundsChange(storedAgent.ownerMembers, agent)
  );
}

/**
 * Refuses a change that widens the agent's bounds, unless the caller may widen them.
 *
 * @param after the effective record after the change
 * @param before the last record of the id, even if that agent was removed; for a new instance the record of its base;
 * undefined for a new agent
 * @throws DeputeError AGENT_BOUNDS_WIDENED naming each widening
 */
export async function checkBounds(
  { boundsOperators }: RegistryContext,
  tx: ReadTx,
  identity: Identity,
  after: Agent,
  before: Agent | undefined,
): Promise<void> {
  if (boundsOperators.mayWiden(identity)) return;
  const widened = await listWidenings(tx, after, before);
  if (widened.length > 0) throw boundsWidened(after.id, widened);
}

/** Returns each member that permits the agent more than the last record does; see {@link checkBounds}. */
export async function listWidenings(
  tx: ReadTx,
  after: Agent,
  before: Agent | undefined,
): Promise<Widening[]> {
  const { id, principal, manifest } = after;
  const comparesOtherManifests = manifest !== undefined && baseOf(id) === undefined;
  const others = comparesOtherManifests ? await otherManifests(tx, principal, id) : [];
  // After a change of the key, the agent's previous manifest does not count. The manifests of the new key's other
  // agents count instead.
  const ownManifest =
    before === undefined || before.principal === principal ? before : { ...before, manifest: undefined };
  return widenings(after, { ownBounds: ownManifest, others });
}

function boundsWidened(agent: string, widened: readonly Widening[]): DeputeError {
  return new DeputeError(
    ErrorReason.AGENT_BOUNDS_WIDENED,
    "the change widens the agent's bounds; only a principal of DEPUTE_BOUNDS_OPERATORS may do that; other callers must propose the manifest (ProposalService.CreateProposal)",
    {
      metadata: { agent, widenings: String(widened.length) },
      violations: widened.map(({ path, before, after }) => ({
        field: path,
        description: `was ${before}, would be ${after}`,
        reason: "agent.bounds.widened",
      })),
    },
  );
}
