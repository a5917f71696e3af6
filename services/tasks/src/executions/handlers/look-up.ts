import type { CallOptions } from "@connectrpc/connect";
import type { ExecutionRequest } from "@depute/contracts/agenta/delegation/v0/execution_request_pb";
import type { Offer } from "@depute/contracts/agenta/delegation/v0/offer_pb";
import type { Agent } from "@depute/contracts/depute/registry/v1/agent_pb";
import type { PublishedOffer } from "@depute/contracts/depute/registry/v1/offer_service_pb";
import { ErrorReason } from "@depute/core";
import { reasonOf } from "@depute/service";
import type { Target } from "../../core/index.ts";
import type { Found } from "../rules/admission.ts";
import type { ExecutionsContext } from "./context.ts";

/** Maximum number of an offer's capability names that one request looks up in the registry. */
const MAX_WORDS = 8;

/**
 * Returns the offer that a request names, if the buyer may see it. If only other buyers may see the offer, the result
 * is `not_for_buyer` for a buyer that may see the seller. For any other buyer, the result is `no_offer`.
 *
 * @param viewer the caller's principal, which acts for the buyer
 */
export async function lookUpOffer(
  executions: ExecutionsContext,
  { offerId, offerVersion, sellerAgentId }: ExecutionRequest,
  viewer: string,
  options: CallOptions,
): Promise<Found> {
  const look = (version: string, by: string) => getOffer(executions, offerId, version, by, options);
  const [named, current] = await Promise.all([look(offerVersion, viewer), look("", viewer)]);
  const openVersion = current?.open === true ? current.offer?.offerVersion : undefined;
  if (named?.offer !== undefined) {
    return { kind: "offer", facts: { offer: named.offer, open: named.open, openVersion } };
  }
  if (current !== undefined) return { kind: "no_version", openVersion };
  const hidden = await look("", "");
  if (hidden?.offer?.sellerAgent?.agentId !== sellerAgentId) return { kind: "no_offer" };
  try {
    await executions.agents.getAgent({ agentId: sellerAgentId, viewer }, options);
    return { kind: "not_for_buyer" };
  } catch (error) {
    if (reasonOf(error) === ErrorReason.AGENT_NOT_FOUND) return { kind: "no_offer" };
    throw error;
  }
}

async function getOffer(
  { offers }: ExecutionsContext,
  offerId: string,
  offerVersion: string,
  viewer: string,
  options: CallOptions,
): Promise<PublishedOffer | undefined> {
  try {
    return (await offers.getOffer({ offerId, offerVersion, viewer }, options)).offer;
  } catch (error) {
    if (reasonOf(error) === ErrorReason.OFFER_NOT_FOUND) return undefined;
    throw error;
  }
}

/**
 * Returns the delegate and the capability of an execution. Takes the first of the offer's capability names that is a
 * capability id of the seller. If no name fits, any worker of the seller may do the work.
 */
export async function resolveWork(
  { discovery }: ExecutionsContext,
  offer: Offer,
  { id: agentId, principal: agentPrincipal }: Agent,
  options: CallOptions,
): Promise<Target> {
  const target = { agentId, agentPrincipal, overseerId: undefined, contract: undefined };
  for (const capabilityId of (offer.capabilities?.values ?? []).slice(0, MAX_WORDS)) {
    try {
      const { capability } = await discovery.resolveCapability({ capabilityId, agentId }, options);
      if (capability !== undefined) return { ...target, capability };
    } catch (error) {
      if (!NO_CAPABILITY.has(reasonOf(error))) throw error;
    }
  }
  return { ...target, capability: undefined };
}

/** The registry's errors for a name that is not a capability of the seller. */
const NO_CAPABILITY: ReadonlySet<ErrorReason | undefined> = new Set([
  ErrorReason.CAPABILITY_NOT_FOUND,
  ErrorReason.CAPABILITY_AMBIGUOUS,
  ErrorReason.AGENT_NOT_FOUND,
  ErrorReason.INVALID_REQUEST,
]);
