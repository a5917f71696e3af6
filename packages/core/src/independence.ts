/**
 * The facts about an agent that decide its independence, as the registry returns them
 * (OrganizationService.BatchGetAffiliations).
 */
export interface Affiliation {
  readonly agentId: string;
  /**
   * The key that acts for the agent; empty for an agent without a key. An agent without a key belongs to the
   * operator.
   */
  readonly principal: string;
  /**
   * Organizations that an operator has proven for the principal. The organization's name in an agent's record is not
   * a proof.
   */
  readonly organizations: readonly string[];
}

/** The reason why an agent may not verify as a third party. */
export type ThirdPartyFault =
  /** The agent has the same owner as one of the parties. */
  | "one_owner"
  /** The buyer's request names verifiers, but not this agent. */
  | "not_named"
  /** No operator has proven the agent's organization, and the buyer's request names no verifiers. */
  | "not_proven";

/**
 * Whether two agents have one owner: they are one agent, have one principal, or share a proven organization. All agents
 * without a key have one owner, because the same callers act for all of them. Verification, trust, ratings and
 * endorsements all compare agents by this function.
 */
export function haveOneOwner(a: Affiliation, b: Affiliation): boolean {
  return (
    a.agentId === b.agentId ||
    a.principal === b.principal ||
    a.organizations.some((organization) => b.organizations.includes(organization))
  );
}

/**
 * Returns the reason why an agent may not verify work between parties as a third party; undefined if the agent may. The
 * agent must never have the same owner as a party. An operator's proof of the agent's organization shows that the
 * owners differ. If the buyer names the agent as a verifier, no proof is needed, because the buyer accepts the risk.
 * (Agenta `verification_policy.mode` third_party_verified)
 *
 * @param namedAgentIds the agents that the buyer's request names as verifiers; if there are any, no other agent may
 *   verify
 */
export function thirdPartyFault(
  third: Affiliation,
  parties: readonly Affiliation[],
  namedAgentIds: readonly string[],
): ThirdPartyFault | undefined {
  if (parties.some((party) => haveOneOwner(third, party))) return "one_owner";
  if (namedAgentIds.length > 0) return namedAgentIds.includes(third.agentId) ? undefined : "not_named";
  return third.organizations.length > 0 ? undefined : "not_proven";
}
