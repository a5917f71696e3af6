import type { Agent } from "@depute/contracts/depute/registry/v1/agent_pb";
import { AuthoritySource } from "@depute/contracts/depute/registry/v1/authority_service_pb";

/** A principal's grant of an authority, as far as rules ask. */
export interface Grant {
  readonly principal: string;
  readonly source: AuthoritySource;
}

/** Whether an unheld authority goes to the first principal that registers an agent below it. */
export type AuthorityPolicy = "first" | "granted";

const HOST = /^(?=.{1,253}$)[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?(\.[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?)*$/;
const URI = /^agent:\/\/([^/]+)\/./;

/**
 * The authority of an agent URI: a host name in lower case. Names of hosts have no case, so another spelling would be
 * another agent that reads the same.
 *
 * @returns undefined for a URI without one
 */
export function authorityOf(uri: string): string | undefined {
  const host = URI.exec(uri)?.[1];
  return host !== undefined && HOST.test(host) ? host : undefined;
}

/** The grants that count: first registrations do not beside others. */
export function effective<G extends Grant>(grants: readonly G[]): readonly G[] {
  const strong = grants.filter(({ source }) => source !== AuthoritySource.FIRST);
  return strong.length > 0 ? strong : grants;
}

/** The grant by which a principal holds an authority; undefined when it does not. */
export function holdingOf<G extends Grant>(grants: readonly G[], principal: string): G | undefined {
  return effective(grants).find((grant) => grant.principal === principal);
}

/** How a principal stands to an authority under which it registers an agent. */
export type Standing =
  /** The principal holds it. */
  | "holds"
  /** No principal holds it; the first registration takes it. */
  | "first"
  /** Others hold it. */
  | "taken"
  /** No principal holds it; only a grant or a proof gives it. */
  | "ungranted";

/**
 * How a principal stands to an authority.
 *
 * @param isProvable whether the authority's domain is asked for its keys, so that being first gives nothing
 */
export function standingOf(
  grants: readonly Grant[],
  principal: string,
  policy: AuthorityPolicy,
  isProvable: boolean,
): Standing {
  if (holdingOf(grants, principal) !== undefined) return "holds";
  if (grants.length > 0) return "taken";
  return policy === "first" && !isProvable ? "first" : "ungranted";
}

/** The key that an agent speaks by on ASP: its principal, else the key of its card. Empty for an agent without a key. */
export function keyOf({ principal, card }: Pick<Agent, "principal" | "card">): string {
  const key = card?.signingPublicKey;
  return principal === "" && key?.crv === "Ed25519" ? key.x : principal;
}
