/** What independence is judged by. The registry answers with it (OrganizationService.BatchGetAffiliations). */
export interface Affiliation {
  readonly agentId: string;
  /** The key that acts for the agent; empty for an agent without a key, which is the operator's own. */
  readonly principal: string;
  /** Organizations that an operator has proven for the principal. A name in an agent's record is none of them. */
  readonly organizations: readonly string[];
}

/** Why an agent may not judge as a third party. */
export type ThirdPartyFault =
  /** The agent, its principal or its organization is one of the parties'. */
  | "one_owner"
  /** The buyer's request names other verifiers. */
  | "not_named"
  /** No operator has proven its organization, and the buyer's request names no verifiers. */
  | "not_proven";

/**
 * Whether two agents have one owner: they are one agent, have one principal, or share a proven organization. All agents
 * without a key have one owner, because the same callers act for all of them.
 *
 * This is the one comparison of agents for verification, trust, ratings and endorsements.
 */
export function haveOneOwner(a: Affiliation, b: Affiliation): boolean {
  return (
    a.agentId === b.agentId ||
    a.principal === b.principal ||
    a.organizations.some((organization) => b.organizations.includes(organization))
  );
}

/**
 * Why an agent may not judge work between parties as a third party; undefined if it may. Another owner is required in any
 * case. An operator's proof shows that the owner is another one; a buyer that names a verifier takes that on itself.
 * (Agenta `verification_policy.mode` third_party_verified)
 *
 * @param named the agents that the buyer's request names as verifiers; with any of them, no other agent may judge
 */
export function thirdPartyFault(
  third: Affiliation,
  parties: readonly Affiliation[],
  named: readonly string[],
): ThirdPartyFault | undefined {
  if (parties.some((party) => haveOneOwner(third, party))) return "one_owner";
  if (named.length > 0) return named.includes(third.agentId) ? undefined : "not_named";
  return third.organizations.length > 0 ? undefined : "not_proven";
}
