import type { Agent } from "@depute/contracts/depute/registry/v1/agent_pb";
import { DeputeError, ErrorReason, invalid } from "@depute/core";

/** What a registration is checked against. */
export interface Registered {
  readonly principal: string;
}

/**
 * The agent that an id is an instance of: what stands before its first colon; undefined for an id without one.
 * Permissions of an agent hold for its instances. (CAP "Agent Definition", instances)
 */
export function baseOf(id: string): string | undefined {
  const colon = id.indexOf(":");
  return colon < 0 ? undefined : id.slice(0, colon);
}

/** An Ed25519 public key in base64url: 43 characters, the last one without spare bits. */
const KEY = /^[A-Za-z0-9_-]{42}[AEIMQUYcgkosw048]$/;

/**
 * The agent that a registration is about. Without a principal the agent is the caller's own.
 *
 * @param caller the caller's principal; one that is no key, as `local`, owns no agent this way
 */
export function ownedBy(agent: Agent, caller: string): Agent {
  return agent.principal === "" && KEY.test(caller) ? { ...agent, principal: caller } : agent;
}

/**
 * Checks that an id is the principal's to register: not another's, and an instance only of an agent of its own, because
 * the instance is allowed whatever its base is.
 *
 * @throws DeputeError AGENT_EXISTS, INVALID_REQUEST
 */
export function checkOwnership(
  id: string,
  principal: string,
  known: Registered | undefined,
  base: Registered | undefined,
): void {
  if (known !== undefined && known.principal !== principal) {
    throw new DeputeError(ErrorReason.AGENT_EXISTS, `the id ${id} belongs to another principal`, {
      metadata: { agent: id },
    });
  }
  const baseId = baseOf(id);
  if (baseId !== undefined && base?.principal !== principal) {
    const description = `is an instance of ${baseId}, which this principal has not registered`;
    throw new DeputeError(ErrorReason.INVALID_REQUEST, `agent.id: ${description}`, {
      violations: [{ field: "agent.id", description, reason: "agent.id.base" }],
    });
  }
}

/**
 * Checks that a card does not claim what the registration does not: its signing key is the principal that proves to hold
 * the agent's key, since whoever reads the card believes messages signed by it.
 *
 * @throws DeputeError INVALID_REQUEST
 */
export function checkCard({ card, principal }: Agent): void {
  const key = card?.signingPublicKey;
  if (key === undefined || principal === "") return;
  if (key.crv === "Ed25519" && key.x === principal) return;
  throw invalid("agent.card.signing_public_key", "must be the agent's principal");
}

/** The words that an agent is filtered by, each with a letter for its kind; the same word twice is one. */
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
