import type { ExecutionError } from "@depute/contracts/agenta/delegation/v0/execution_receipt_pb";
import type { ExecutionRequest } from "@depute/contracts/agenta/delegation/v0/execution_request_pb";
import { type Affiliation, thirdPartyFault } from "@depute/core";
import { failed } from "./refusal.ts";

/** The key in a request's metadata that lists the third-party verifiers that the buyer accepts. */
export const VERIFIERS = "acceptable_verifiers";

/** Maximum number of verifiers that one request may name. */
export const MAX_VERIFIERS = 16;

/** An agent's id. (Agenta execution_request.schema.json `buyer_agent.agent_id`) */
const AGENT_ID = /^[A-Za-z0-9._:-]{3,128}$/;

/**
 * Returns the agents that a request accepts as third-party verifiers; empty for none. Depute's choice: a
 * comma-separated list in the request's metadata (`acceptable_verifiers`), because the protocol has no field for such
 * verifiers.
 *
 * @returns undefined for a malformed list
 */
export function acceptableVerifiers({ metadata }: ExecutionRequest): string[] | undefined {
  const verifierNames = metadata?.[VERIFIERS];
  if (verifierNames === undefined || verifierNames === null) return [];
  if (typeof verifierNames !== "string") return undefined;
  const ids = verifierNames.split(",").map((id) => id.trim());
  const areIds = ids.length <= MAX_VERIFIERS && ids.every((id) => AGENT_ID.test(id));
  return areIds ? [...new Set(ids)] : undefined;
}

/**
 * Returns the error if a request's third-party verifiers are not acceptable; undefined otherwise. Each verifier must be
 * a registered agent whose owner differs from the owners of the buyer and the seller.
 *
 * @param names undefined for a malformed list
 * @param affiliationOf returns undefined for an agent that the buyer may not see
 */
export function verifiersRefusal(
  { buyerAgent, sellerAgentId }: ExecutionRequest,
  names: readonly string[] | undefined,
  affiliationOf: (agentId: string) => Affiliation | undefined,
): ExecutionError | undefined {
  const path = `/metadata/${VERIFIERS}`;
  const refused = (message: string) => failed("schema_validation_failure", message, { path });
  if (names === undefined) {
    return refused(
      `metadata.${VERIFIERS}: must be up to ${MAX_VERIFIERS} ids of agents, separated by commas`,
    );
  }
  const parties = [buyerAgent?.agentId ?? "", sellerAgentId].flatMap((id) => affiliationOf(id) ?? []);
  for (const id of names) {
    const verifier = affiliationOf(id);
    if (verifier === undefined) {
      return refused(`metadata.${VERIFIERS}: ${id} is not a registered agent: register it first`);
    }
    if (thirdPartyFault(verifier, parties, names) !== undefined) {
      return refused(
        `metadata.${VERIFIERS}: ${id} has the same owner as the buyer or the seller: name another agent`,
      );
    }
  }
  return undefined;
}
