import type { ArtifactType } from "@depute/contracts/agenta/delegation/v0/common_pb";
import type { ExecutionRequest } from "@depute/contracts/agenta/delegation/v0/execution_request_pb";
import { type Offer, VerificationMode } from "@depute/contracts/agenta/delegation/v0/offer_pb";
import { invalid, parseOffsetTime } from "@depute/core";

/** The times of a request and its offer, epoch milliseconds. */
export interface Times {
  /** From when on the work may begin. */
  readonly startFrom: number;
  /** By when the work has to have begun; what has not begun by then has expired. */
  readonly startBy: number;
  /** By when it has to be done. */
  readonly deadline: number;
}

/**
 * The times that hold for an execution. Depute's choice: the work has to be done, not only begun, within the offer's
 * execution window, because the window is when the seller works.
 *
 * @param nowMs epoch milliseconds
 * @throws DeputeError INVALID_REQUEST for a time that the calendar does not have
 */
export function timesOf(request: ExecutionRequest, offer: Offer, nowMs: number): Times {
  const { deadlineAt, latestStartAt } = request.executionConstraints ?? {};
  const field = "request.execution_constraints";
  const deadline = timeOf(deadlineAt, `${field}.deadline_at`) ?? nowMs;
  const latest = timeOf(latestStartAt, `${field}.latest_start_at`) ?? Number.POSITIVE_INFINITY;
  timeOf(request.requestedAt, "request.requested_at");
  const from = timeOf(offer.executionWindow?.notBefore, "offer") ?? nowMs;
  const until = timeOf(offer.executionWindow?.notAfter, "offer") ?? Number.POSITIVE_INFINITY;
  const end = Math.min(deadline, until);
  return { startFrom: Math.max(nowMs, from), startBy: Math.min(latest, end), deadline: end };
}

function timeOf(text: string | undefined, field: string): number | undefined {
  if (text === undefined) return undefined;
  const time = parseOffsetTime(text);
  if (time === undefined) throw invalid(field, "is no date of the calendar");
  return time;
}

/** The kinds of evidence that a result needs: the offer's and the buyer's, each once. */
export function requiredArtifacts(request: ExecutionRequest, offer: Offer): ArtifactType[] {
  const own = request.verificationRequirements?.requiredArtifacts?.values ?? [];
  return [...new Set([...(offer.verificationPolicy?.requiredArtifacts ?? []), ...own])];
}

/**
 * Whether nothing is charged before a verification has passed: where the buyer asks for it, or the offer leaves it to
 * somebody other than the seller. A buyer that says it needs none waives it.
 */
export function needsVerification(request: ExecutionRequest, offer: Offer): boolean {
  const asked = request.verificationRequirements?.requireVerification;
  return asked ?? offer.verificationPolicy?.mode !== VerificationMode.SELLER_ATTESTED;
}

/** Whether the seller's own word is the verification, and the buyer has not waived it. */
export function isSelfAttested(request: ExecutionRequest, offer: Offer): boolean {
  const isSellers = offer.verificationPolicy?.mode === VerificationMode.SELLER_ATTESTED;
  return isSellers && request.verificationRequirements?.requireVerification !== false;
}
