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

/** Whether an operator of bounds calls, and changes nothing else of a known agent. Then it needs no key of the agent. */
export function isOperatorsChange(
  { boundsOperators }: RegistryContext,
  identity: Identity,
  agent: Agent,
  known: StoredAgent | undefined,
): boolean {
  return known !== undefined && boundsOperators.includes(identity) && isBoundsChange(known.own, agent);
}

/**
 * Refuses a change that widens what bounds an agent, unless the caller may widen it.
 *
 * @param after the record that would hold, for an instance with what it has from its base
 * @param before the last record of the id, also a removed one's; for a new instance its base
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
  const { id, principal, manifest } = after;
  const isOthersMatter = manifest !== undefined && baseOf(id) === undefined;
  const others = isOthersMatter ? await otherManifests(tx, principal, id) : [];
  // An agent that comes to another key brings its manifest to what binds that key.
  const own =
    before === undefined || before.principal === principal ? before : { ...before, manifest: undefined };
  const found = widenings(after, { own, others });
  if (found.length > 0) throw widened(id, found);
}

function widened(agent: string, found: readonly Widening[]): DeputeError {
  return new DeputeError(
    ErrorReason.AGENT_BOUNDS_WIDENED,
    "the change widens what bounds the agent; only a principal of DEPUTE_BOUNDS_OPERATORS may do that",
    {
      metadata: { agent, widenings: String(found.length) },
      violations: found.map(({ path, before, after }) => ({
        field: path,
        description: `was ${before}, would be ${after}`,
        reason: "agent.bounds.widened",
      })),
    },
  );
}
