import type { JsonObject } from "@bufbuild/protobuf";
import type { ExecutionStatus } from "@depute/contracts/agenta/delegation/v0/execution_receipt_pb";
import { ErrorCode, type ExecutionError } from "@depute/contracts/agenta/delegation/v0/execution_receipt_pb";
import type { ExecutionRequest } from "@depute/contracts/agenta/delegation/v0/execution_request_pb";
import type { Offer } from "@depute/contracts/agenta/delegation/v0/offer_pb";
import { isTerminal } from "./machine.ts";
import { budgetRefusal, limitOf } from "./price.ts";
import { failed } from "./refusal.ts";
import { timesOf } from "./terms.ts";

/**
 * Tolerance for clock differences, in milliseconds. A deadline may exceed the offer's longest execution time by this
 * tolerance.
 */
export const CLOCK_SKEW_MS = 5_000;

/** The registry's facts about an offer. */
export interface OfferFacts {
  readonly offer: Offer;
  /** Whether the offer is valid now and not withdrawn. */
  readonly open: boolean;
  /** The version that is on sale now; undefined for none. */
  readonly openVersion: string | undefined;
}

/** The result of the registry's look-up of a request's offer. */
export type Found =
  | { readonly kind: "offer"; readonly facts: OfferFacts }
  /** The offer does not exist, or the buyer may not see it. */
  | { readonly kind: "no_offer" }
  /** The offer exists, but not in this version. */
  | { readonly kind: "no_version"; readonly openVersion: string | undefined }
  /** The offer's publisher does not sell to this buyer. */
  | { readonly kind: "not_for_buyer" };

/**
 * Returns the refusal of a request by its offer's terms; undefined for none. Checks offer, parties, price and time in
 * this order, and returns the first fault.
 *
 * @param nowMs epoch milliseconds
 * @throws DeputeError INVALID_REQUEST for a date that does not exist
 */
export function offerRefusal(
  request: ExecutionRequest,
  found: Found,
  nowMs: number,
): ExecutionError | undefined {
  switch (found.kind) {
    case "no_offer":
      return failed(ErrorCode.OFFER_NOT_FOUND, "the offer does not exist");
    case "not_for_buyer":
      return failed(ErrorCode.BUYER_NOT_ALLOWED, "the offer is not for this buyer");
    case "no_version":
      return otherVersion(found.openVersion, "the offer does not have this version");
    case "offer":
      return refusalOf(request, found.facts, nowMs);
  }
}

function refusalOf(request: ExecutionRequest, facts: OfferFacts, nowMs: number): ExecutionError | undefined {
  const { offer, open, openVersion } = facts;
  if (!open && openVersion === undefined) {
    return failed(ErrorCode.OFFER_NOT_FOUND, "the offer is not for sale now");
  }
  if (!open) return otherVersion(openVersion, "this version is not for sale now");
  if (offer.sellerAgent?.agentId !== request.sellerAgentId) {
    return failed("schema_validation_failure", "the offer belongs to another seller", {
      path: "/seller_agent_id",
    });
  }
  const allowed = offer.allowedBuyerAgents?.values;
  if (allowed !== undefined && !allowed.includes(request.buyerAgent?.agentId ?? "")) {
    return failed(ErrorCode.BUYER_NOT_ALLOWED, "the offer is not for this buyer");
  }
  const pricing = offer.pricing;
  if (pricing === undefined) return failed(ErrorCode.INTERNAL_ERROR, "the offer has no price");
  return budgetRefusal(request, pricing) ?? timeRefusal(request, offer, nowMs);
}

function otherVersion(openVersion: string | undefined, message: string): ExecutionError {
  const details: JsonObject = openVersion === undefined ? {} : { current_version: openVersion };
  return failed("offer_version_mismatch", message, details);
}

function timeRefusal(request: ExecutionRequest, offer: Offer, nowMs: number): ExecutionError | undefined {
  const { startFrom, startBy, deadline } = timesOf(request, offer, nowMs);
  const mode = "deadline_exceeded";
  if (deadline <= nowMs) return failed(mode, "the deadline, or the offer's execution window, has passed");
  if (startBy <= startFrom) return failed(mode, "the latest start is before the earliest start");
  const longestMs = Number(offer.serviceLevels?.maxCompletionSeconds ?? 0) * 1000;
  if (deadline - startFrom > longestMs + CLOCK_SKEW_MS) {
    return failed(mode, "the deadline is beyond the offer's max_completion_seconds", {
      max_completion_seconds: longestMs / 1000,
    });
  }
  return undefined;
}

/** The facts about the parent execution of a request. */
export interface ParentFacts {
  readonly sellerId: string;
  readonly status: ExecutionStatus;
  readonly currency: string;
  /** Maximum charge for the parent execution, in minor units of the currency. */
  readonly limit: bigint;
  /**
   * Total cost of the parent's child executions so far, in minor units of the currency. An open child counts with its
   * maximum charge.
   */
  readonly spent: bigint;
  /** The deadline of the parent execution, in epoch milliseconds. */
  readonly deadline: number;
}

/**
 * Returns the refusal of a child execution; undefined for none. The child's buyer must be the seller of the parent
 * execution. The child must end by the parent's deadline. All children together may cost at most the parent's
 * maximum charge.
 *
 * @param parent undefined if the parent execution does not exist
 */
export function parentRefusal(
  request: ExecutionRequest,
  parent: ParentFacts | undefined,
  deadline: number,
): ExecutionError | undefined {
  const path = { path: "/parent_request_id" };
  const invalid = (message: string) => failed("schema_validation_failure", message, path);
  if (parent === undefined || parent.sellerId !== request.buyerAgent?.agentId) {
    return invalid("the parent execution does not exist, or the buyer is not its seller");
  }
  if (isTerminal(parent.status)) return invalid("the parent execution has ended");
  if (deadline > parent.deadline) {
    return failed("deadline_exceeded", "the deadline is later than the deadline of the parent execution");
  }
  const limit = limitOf(request);
  const left = parent.limit - parent.spent;
  if (request.payment?.currency !== parent.currency || limit > left) {
    const message = `the parent execution has ${left} ${parent.currency} left`;
    const details = { ...path, currency: parent.currency, allowed: Number(left), needed: Number(limit) };
    return failed("budget_authorization_missing", message, details);
  }
  return undefined;
}

/** The current load of an offer. */
export interface Load {
  /** Number of accepted executions that have not ended. */
  readonly open: number;
  /** Number of requests that the platform accepted within the last minute. */
  readonly lastMinute: number;
}

/** The period over which requests count for `max_requests_per_minute`, in milliseconds. */
export const RATE_WINDOW_MS = 60_000;

/**
 * Returns a refusal if the offer has no capacity for another execution; otherwise undefined. Refused requests do not
 * count.
 */
export function loadRefusal({ rateLimits }: Offer, { open, lastMinute }: Load): ExecutionError | undefined {
  const { maxConcurrentExecutions: most, maxRequestsPerMinute: rate } = rateLimits ?? {};
  const mode = "capacity_unavailable";
  if (most !== undefined && open >= most) {
    return failed(mode, `the offer already has ${most} open executions: try again later`, {
      max_concurrent_executions: Number(most),
    });
  }
  if (rate !== undefined && lastMinute >= rate) {
    return failed(mode, `the offer has accepted ${rate} requests within a minute: try again later`, {
      max_requests_per_minute: Number(rate),
    });
  }
  return undefined;
}
