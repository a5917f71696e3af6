import type { Agent } from "@depute/contracts/depute/registry/v1/agent_pb";
import { DeputeError, ErrorReason, invalid } from "@depute/core";

/** The registered agent with which a registration is compared. */
export interface Registered {
  readonly principal: string;
}

/**
 * Returns the id of an instance's base: the text before the first colon; undefined for an id without a colon.
 * Permissions of an agent apply to its instances. (CAP "Agent Definition", instances)
 */
export function baseOf(id: string): string | undefined {
  const colon = id.indexOf(":");
  return colon < 0 ? undefined : id.slice(0, colon);
}

/** Matches an Ed25519 public key in base64url: 43 characters. The unused bits of the last character are zero. */
const KEY = /^[A-Za-z0-9_-]{42}[AEIMQUYcgkosw048]$/;

/**
 * Returns the record with its principal. A record without a principal gets the caller's principal.
 *
 * @param caller the caller's principal; the function does not assign `local` or another text that is not a key
 */
export function withDefaultPrincipal(agent: Agent, caller: string): Agent {
  return agent.principal === "" && KEY.test(caller) ? { ...agent, principal: caller } : agent;
}

/**
 * Requires that a principal may register an id: the id is free or belongs to the principal. The base of an instance
 * must belong to the principal too, because an instance has the permissions of its base.
 *
 * @throws DeputeError AGENT_EXISTS, INVALID_REQUEST
 */
export function checkOwnership(
  id: string,
  principal: string,
  registeredAgent: Registered | undefined,
  base: Registered | undefined,
): void {
  if (registeredAgent !== undefined && registeredAgent.principal !== principal) {
    throw new DeputeError(ErrorReason.AGENT_EXISTS, `the id ${id} belongs to another principal`, {
      metadata: { agent: id },
    });
  }
  const baseId = baseOf(id);
  if (baseId !== undefined && base?.principal !== principal) {
    const description = `is an instance of ${baseId}; this principal must register the base first`;
    throw new DeputeError(ErrorReason.INVALID_REQUEST, `agent.id: ${description}`, {
      violations: [{ field: "agent.id", description, reason: "agent.id.base" }],
    });
  }
}

/**
 * Requires that the card's signing key equals the agent's principal, if both exist. Readers of the card trust messages
 * with this key's signature, and the registrant has proven only the principal's key.
 *
 * @throws DeputeError INVALID_REQUEST
 */
export function checkCard({ card, principal }: Agent): void {
  const key = card?.signingPublicKey;
  if (key === undefined || principal === "") return;
  if (key.crv === "Ed25519" && key.x === principal) return;
  throw invalid("agent.card.signing_public_key", "must be the agent's principal");
}

/**
 * Returns the distinct search keys of an agent. The first letter of a key shows its kind, such as a tag or a protocol.
 */
export function searchKeys({
  tags,
  protocols,
  organization,
}: Pick<Agent, "tags" | "protocols" | "organization">) {
  const keys = [...tags.map(tagKey), ...protocols.map(protocolKey)];
  if (organization !== "") keys.push(organizationKey(organization));
  return [...new Set(keys)];
}

export const tagKey = (tag: string) => `t${tag.normalize("NFKC").toLowerCase()}`;
export const protocolKey = (protocol: string) => `p${protocol.normalize("NFKC").toLowerCase()}`;
export const organizationKey = (organization: string) => `o${organization}`;
