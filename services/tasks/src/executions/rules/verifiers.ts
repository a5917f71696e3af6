import type { ExecutionError } from "@depute/contracts/agenta/delegation/v0/execution_receipt_pb";
import type { ExecutionRequest } from "@depute/contracts/agenta/delegation/v0/execution_request_pb";
import { type Affiliation, thirdPartyFault } from "@depute/core";
import { failed } from "./refusal.ts";

/** The member of a request's metadata that names third parties which the buyer accepts. */
export const VERIFIERS = "acceptable_verifiers";

/** Verifiers that one request names. */
export const MAX_VERIFIERS = 16;

/** An agent's id. (Agenta execution_request.schema.json `buyer_agent.agent_id`) */
const AGENT_ID = /^[A-Za-z0-9._:-]{3,128}$/;

/**
 * The agents that a request names as acceptable third parties; none where it names none.
 *
 * Depute's choice: the protocol has no field for them, so the request's metadata has their ids in one text, with commas
 * between them (`acceptable_verifiers`).
 *
 * @returns undefined for a text that is no list of ids
 */
export function acceptableVerifiers({ metadata }: ExecutionRequest): string[] | undefined {
  const named = metadata?.[VERIFIERS];
  if (named === undefined || named === null) return [];
  if (typeof named !== "string") return undefined;
  const ids = named.split(",").map((id) => id.trim());
  const areIds = ids.length <= MAX_VERIFIERS && ids.every((id) => AGENT_ID.test(id));
  return areIds ? [...new Set(ids)] : undefined;
}

/**
 * Why the named verifiers are refused, or undefined: each has to be a registered agent of another owner than buyer and seller.
 *
 * @param named undefined for a text that is no list of ids
 * @param affiliationOf undefined for an agent that the buyer does not see
 */
export function verifiersRefusal(
  { buyerAgent, sellerAgentId }: ExecutionRequest,
  named: readonly string[] | undefined,
  affiliationOf: (agentId: string) => Affiliation | undefined,
): ExecutionError | undefined {
  const path = `/metadata/${VERIFIERS}`;
  const refused = (message: string) => failed("schema_validation_failure", message, { path });
  if (named === undefined) {
    return refused(
      `metadata.${VERIFIERS}: write up to ${MAX_VERIFIERS} ids of agents with commas between them`,
    );
  }
  const parties = [buyerAgent?.agentId ?? "", sellerAgentId].flatMap((id) => affiliationOf(id) ?? []);
  for (const id of named) {
    const verifier = affiliationOf(id);
    if (verifier === undefined) {
      return refused(`metadata.${VERIFIERS}: ${id} is no registered agent: register it first`);
    }
    if (thirdPartyFault(verifier, parties, named) !== undefined) {
      return refused(
        `metadata.${VERIFIERS}: ${id} has one owner with the buyer or the seller: name another agent`,
      );
    }
  }
  return undefined;
}
