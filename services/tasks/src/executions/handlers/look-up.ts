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

/** Words of an offer that the registry is asked about, to find the capability that is sold. */
const MAX_WORDS = 8;

/**
 * The offer that a request names, by the sight of its buyer. An offer that is for other buyers is told from none only where
 * the buyer may know of the seller.
 *
 * @param viewer the buyer's principal
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
    await executions.agents.getAgent({ id: sellerAgentId, viewer }, options);
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
 * Whom the work is for, and which of the seller's capabilities it is: the first word of the offer that the seller has
 * published as one, or free work, which any of the seller's workers does that takes everything.
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

/** What the registry says of words that are no capability of the seller's. */
const NO_CAPABILITY: ReadonlySet<ErrorReason | undefined> = new Set([
  ErrorReason.CAPABILITY_NOT_FOUND,
  ErrorReason.CAPABILITY_AMBIGUOUS,
  ErrorReason.AGENT_NOT_FOUND,
  ErrorReason.INVALID_REQUEST,
]);
