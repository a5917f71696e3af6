import type { ArtifactType } from "@depute/contracts/agenta/delegation/v0/agenta_common_pb";
import type { ExecutionRequest } from "@depute/contracts/agenta/delegation/v0/execution_request_pb";
import { type Offer, VerificationMode } from "@depute/contracts/agenta/delegation/v0/offer_pb";
import { invalid, parseOffsetTime } from "@depute/core";

/** The times of a request and its offer, epoch milliseconds. */
export interface Times {
  /** The time from which the work may begin. */
  readonly startFrom: number;
  /** The time by which the work must start. An execution whose work has not started by this time expires. */
  readonly startBy: number;
  /** The time by which the work must end. */
  readonly deadline: number;
}

/**
 * Returns the times of an execution. Depute's choice: the work must end within the execution window that the offer
 * states, even if the buyer's deadline is later.
 *
 * @param nowMs epoch milliseconds
 * @throws DeputeError INVALID_REQUEST for a date that does not exist
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
  if (time === undefined) throw invalid(field, "is not a calendar date");
  return time;
}

/** Returns the kinds of evidence that the offer or the buyer requires, without duplicates. */
export function requiredArtifacts(request: ExecutionRequest, offer: Offer): ArtifactType[] {
  const ownArtifacts = request.verificationRequirements?.requiredArtifacts?.values ?? [];
  return [...new Set([...(offer.verificationPolicy?.requiredArtifacts ?? []), ...ownArtifacts])];
}

/**
 * Whether the charge waits for a verification. The buyer's request decides. If the request states nothing, the charge
 * waits unless the offer's mode is `seller_attested`.
 */
export function needsVerification(request: ExecutionRequest, offer: Offer): boolean {
  const isVerificationRequired = request.verificationRequirements?.requireVerification;
  return isVerificationRequired ?? offer.verificationPolicy?.mode !== VerificationMode.SELLER_ATTESTED;
}

/** Whether the seller itself verifies the work, and the buyer has not waived the verification. */
export function isSelfAttested(request: ExecutionRequest, offer: Offer): boolean {
  const isSellers = offer.verificationPolicy?.mode === VerificationMode.SELLER_ATTESTED;
  return isSellers && request.verificationRequirements?.requireVerification !== false;
}
