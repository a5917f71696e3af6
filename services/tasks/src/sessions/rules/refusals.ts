import {
  type EvidencePlace,
  type LimitCode,
  REFUSALS,
  type Refusal,
  type RefusalCode,
  type Session,
} from "@depute/asp";
import { SessionStateSchema } from "@depute/contracts/asp/v0/session_pb";
import { DeputeError, ErrorReason, invalid } from "@depute/core";

const {
  SESSION_HEAD_MOVED,
  SESSION_STATE_CONFLICT,
  SESSION_INTEGRITY_VIOLATION,
  SESSION_NOT_ALLOWED,
  SESSION_MESSAGE_ID_TAKEN,
  LIMIT_EXCEEDED,
  INVALID_REQUEST,
  AGENT_NOT_FOUND,
} = ErrorReason;

/** The platform's error reason for each refusal code of ASP. */
export const REASONS = {
  malformed: INVALID_REQUEST,
  unsupported_version: INVALID_REQUEST,
  unsupported_format: INVALID_REQUEST,
  wrong_session: INVALID_REQUEST,
  unknown_agent: AGENT_NOT_FOUND,
  not_a_participant: SESSION_NOT_ALLOWED,
  wrong_hash: SESSION_INTEGRITY_VIOLATION,
  bad_signature: SESSION_INTEGRITY_VIOLATION,
  bad_proof: SESSION_INTEGRITY_VIOLATION,
  stale_proof: SESSION_INTEGRITY_VIOLATION,
  proof_replayed: SESSION_INTEGRITY_VIOLATION,
  duplicate_message: SESSION_MESSAGE_ID_TAKEN,
  head_moved: SESSION_HEAD_MOVED,
  wrong_sequence: SESSION_STATE_CONFLICT,
  clock_skew: SESSION_STATE_CONFLICT,
  organization_mismatch: SESSION_NOT_ALLOWED,
  trust_mismatch: SESSION_NOT_ALLOWED,
  insufficient_trust: SESSION_NOT_ALLOWED,
  session_ended: SESSION_STATE_CONFLICT,
  wrong_state: SESSION_STATE_CONFLICT,
  closing: SESSION_STATE_CONFLICT,
  wrong_party: SESSION_NOT_ALLOWED,
  authority_exceeded: SESSION_NOT_ALLOWED,
  not_conformant: SESSION_NOT_ALLOWED,
  performative_not_allowed: SESSION_NOT_ALLOWED,
  unknown_reference: SESSION_STATE_CONFLICT,
  unknown_evidence: SESSION_STATE_CONFLICT,
  reference_closed: SESSION_STATE_CONFLICT,
  expired: SESSION_STATE_CONFLICT,
  id_taken: SESSION_MESSAGE_ID_TAKEN,
  unknown_party: SESSION_STATE_CONFLICT,
  same_principal: SESSION_NOT_ALLOWED,
  already_participant: SESSION_STATE_CONFLICT,
  limit_exceeded: LIMIT_EXCEEDED,
  at_capacity: LIMIT_EXCEEDED,
} as const satisfies Readonly<Record<RefusalCode, ErrorReason>>;

/** Converts a refusal of the session protocol to the platform's error. */
export function refused(refusal: Refusal, session: Session): DeputeError {
  const { code, detail, family, retryable } = refusal;
  const state = SessionStateSchema.value[session.state]?.localName ?? "";
  const metadata = {
    code,
    family,
    retryable: String(retryable),
    session: session.sessionId,
    state,
    head: session.lastHash,
  };
  if ("reached" in refusal) {
    const { limit, max } = refusal.reached;
    return new DeputeError(REASONS[refusal.code], detail, {
      metadata: { ...metadata, limit, max: String(max) },
    });
  }
  const reason = REASONS[refusal.code];
  const violations = reason === INVALID_REQUEST ? invalid("envelope", detail).violations : [];
  return new DeputeError(reason, detail, { metadata, violations });
}

/** Returns the error for a proof that was used before. */
export function replayed(session: Session): DeputeError {
  return refusedHere("proof_replayed", "the proof was used before: create a new proof", session);
}

/** Returns the error for a message whose id is already used in the session. */
export function duplicate(session: Session): DeputeError {
  return refusedHere(
    "duplicate_message",
    "the session already has a message with this id: choose another id",
    session,
  );
}

/** Returns the error for a reference to evidence that does not exist or that the sender may not show. */
export function unknownEvidence(session: Session): DeputeError {
  return refusedHere(
    "unknown_evidence",
    "a reference must name evidence from a session in which the sender took part",
    session,
  );
}

function refusedHere(code: Exclude<RefusalCode, LimitCode>, detail: string, session: Session): DeputeError {
  return refused({ code, detail, ...REFUSALS[code] }, session);
}

/** Returns the error for a delegation that does not exist, is hidden from the caller, or has no report. */
export function delegationNotFound({ sessionId, delegationId }: EvidencePlace): DeputeError {
  return new DeputeError(
    ErrorReason.SESSION_DELEGATION_NOT_FOUND,
    "the delegation does not exist, or the caller may not see it",
    {
      metadata: { session: sessionId, delegation: delegationId },
    },
  );
}

export function sessionNotFound(sessionId: string): DeputeError {
  return new DeputeError(
    ErrorReason.SESSION_NOT_FOUND,
    "the session does not exist, or the caller may not see it",
    {
      metadata: { session: sessionId },
    },
  );
}
