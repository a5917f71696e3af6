import type { Agent } from "@depute/contracts/depute/registry/v1/agent_pb";
import { AuthoritySource } from "@depute/contracts/depute/registry/v1/authority_service_pb";

/** The members of a grant that the rules read. */
export interface Grant {
  readonly principal: string;
  readonly source: AuthoritySource;
}

/**
 * The policy for an authority that has no grants. `first`: the first principal that registers an agent below the
 * authority gets the authority. `granted`: no principal has the authority until a grant exists.
 */
export type AuthorityPolicy = "first" | "granted";

const HOST = /^(?=.{1,253}$)[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?(\.[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?)*$/;
const URI = /^agent:\/\/([^/]+)\/./;

/**
 * Returns the authority of an agent URI: a host name in lower case. Only lower case is accepted, so that one host has
 * one spelling: a URI with upper case has no authority.
 *
 * @returns undefined for a URI without an authority
 */
export function authorityOf(uri: string): string | undefined {
  const host = URI.exec(uri)?.[1];
  return host !== undefined && HOST.test(host) ? host : undefined;
}

/**
 * Returns the grants in force. Grants from first registrations do not count if the authority has a grant from another
 * source.
 */
export function grantsInForce<G extends Grant>(grants: readonly G[]): readonly G[] {
  const strong = grants.filter(({ source }) => source !== AuthoritySource.FIRST);
  return strong.length > 0 ? strong : grants;
}

/**
 * Returns the grant by which a principal holds an authority; undefined if the principal does not hold the authority.
 */
export function findGrant<G extends Grant>(grants: readonly G[], principal: string): G | undefined {
  return grantsInForce(grants).find((grant) => grant.principal === principal);
}

/** The relation between an authority and the principal that registers an agent below it. */
export type Standing =
  /** The principal holds the authority. */
  | "holds"
  /** No principal holds the authority, and the first registration takes it. */
  | "first"
  /** Other principals hold the authority. */
  | "taken"
  /** No principal holds the authority, and only a grant or a proof can assign it. */
  | "ungranted";

/**
 * Returns a principal's relation to an authority.
 *
 * @param isProvable whether the registry can read the keys that the domain publishes; if so, a first registration
 * does not assign the authority
 */
export function authorityStanding(
  grants: readonly Grant[],
  principal: string,
  policy: AuthorityPolicy,
  isProvable: boolean,
): Standing {
  if (findGrant(grants, principal) !== undefined) return "holds";
  if (grants.length > 0) return "taken";
  return policy === "first" && !isProvable ? "first" : "ungranted";
}

/**
 * Returns the agent's key in ASP: its principal or, without one, the card's signing key. Empty for an agent without a
 * key.
 */
export function aspKeyOf({ principal, card }: Pick<Agent, "principal" | "card">): string {
  const key = card?.signingPublicKey;
  return principal === "" && key?.crv === "Ed25519" ? key.x : principal;
}
