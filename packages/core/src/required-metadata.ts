import { ErrorReason } from "@depute/contracts/depute/errors/v1/error_reason_pb";

/**
 * The metadata that every refusal with a reason carries. This table repeats the option `metadata` of
 * `ErrorReason`, so that the constructor of DeputeError can require the keys by type. Reasons that are not
 * listed require nothing.
 */
export const REQUIRED_METADATA = {
  [ErrorReason.LIMIT_EXCEEDED]: ["limit", "max"],
  [ErrorReason.UNKNOWN_METHOD]: ["method"],
  [ErrorReason.DEPENDENCY_UNAVAILABLE]: ["service"],
  [ErrorReason.REQUEST_ID_REUSED]: ["request_id"],
  [ErrorReason.SERVICE_UNKNOWN]: ["service"],
  [ErrorReason.ADDRESS_NOT_ALLOWED]: ["host"],
  [ErrorReason.UNSUPPORTED_ENCODING]: ["encoding", "supported"],
  [ErrorReason.CAPABILITY_NOT_FOUND]: ["capability"],
  [ErrorReason.CAPABILITY_AMBIGUOUS]: ["capability", "candidates"],
  [ErrorReason.VERSION_MISMATCH]: ["capability", "current_hash"],
  [ErrorReason.AGENT_EXISTS]: ["agent"],
  [ErrorReason.AGENT_VERSION_EXISTS]: ["agent", "version"],
  [ErrorReason.REVISION_COMPACTED]: ["first_revision"],
  [ErrorReason.OFFER_NOT_FOUND]: ["offer"],
  [ErrorReason.OFFER_VERSION_EXISTS]: ["offer"],
  [ErrorReason.EVIDENCE_EXISTS]: ["evidence"],
  [ErrorReason.AGENT_CARD_NOT_FOUND]: ["agent"],
  [ErrorReason.AGENT_BOUNDS_WIDENED]: ["agent", "widenings"],
  [ErrorReason.ORGANIZATION_PROOF_NOT_FOUND]: ["proof"],
  [ErrorReason.PROPOSAL_NOT_FOUND]: ["proposal"],
  [ErrorReason.PROPOSAL_CLOSED]: ["proposal", "state"],
  [ErrorReason.TASK_NOT_FOUND]: ["task"],
  [ErrorReason.TASK_STATE_CONFLICT]: ["task"],
  [ErrorReason.TASK_NOT_CANCELLABLE]: ["task", "status"],
  [ErrorReason.TASK_NOT_RESUMABLE]: ["task", "status"],
  [ErrorReason.LEASE_LOST]: ["task", "epoch"],
  [ErrorReason.EVENTS_PURGED]: ["first_sequence"],
  [ErrorReason.BUDGET_EXCEEDED]: ["needed", "allowed", "unit"],
  [ErrorReason.TASK_TIMEOUT]: ["task", "limit"],
  [ErrorReason.TASK_ID_TAKEN]: ["external_id"],
  [ErrorReason.CONTEXT_PERMISSION_DENIED]: ["capability"],
  [ErrorReason.TASK_CYCLE]: ["task", "agent", "capability"],
  [ErrorReason.CONTEXT_NOT_FOUND]: ["context"],
  [ErrorReason.CONTEXT_EXPIRED]: ["context"],
  [ErrorReason.CONTEXT_ID_TAKEN]: ["context"],
  [ErrorReason.ARTIFACT_NOT_FOUND]: ["artifact"],
  [ErrorReason.SESSION_NOT_FOUND]: ["session"],
  [ErrorReason.SESSION_ID_TAKEN]: ["session"],
  [ErrorReason.SESSION_HEAD_MOVED]: ["head"],
  [ErrorReason.SESSION_STATE_CONFLICT]: ["code", "state"],
  [ErrorReason.SESSION_INTEGRITY_VIOLATION]: ["code"],
  [ErrorReason.SESSION_NOT_ALLOWED]: ["code"],
  [ErrorReason.SESSION_MESSAGE_ID_TAKEN]: ["code"],
  [ErrorReason.SESSION_DELEGATION_NOT_FOUND]: ["session", "delegation"],
  [ErrorReason.EXECUTION_STATE_CONFLICT]: ["request", "status"],
  [ErrorReason.MESSAGE_NOT_ALLOWED]: ["rule"],
  [ErrorReason.MESSAGE_RULE_NOT_MET]: ["rule"],
  [ErrorReason.TOKEN_DENIED]: ["denial"],
  [ErrorReason.ATTENUATION_VIOLATION]: ["detail"],
  [ErrorReason.TOKEN_MALFORMED]: ["detail"],
  [ErrorReason.RESERVATION_NOT_FOUND]: ["reservation"],
  [ErrorReason.RESERVATION_SETTLED]: ["reservation", "state", "charged"],
  [ErrorReason.DELEGATION_NOT_FOUND]: ["delegation"],
  [ErrorReason.DELEGATION_AMBIGUOUS]: ["delegation", "candidates"],
  [ErrorReason.DELEGATION_STATE_CONFLICT]: ["delegation", "from", "to"],
  [ErrorReason.DELEGATION_INVALID]: ["detail"],
  [ErrorReason.KEY_NOT_FOUND]: ["key"],
  [ErrorReason.KEY_NOT_USABLE]: ["key", "state"],
  [ErrorReason.REVOCATION_STATE_CONFLICT]: ["sequence"],
  [ErrorReason.TOOL_CALL_NOT_FOUND]: ["request_id"],
  [ErrorReason.TOOL_CALL_AMBIGUOUS]: ["request_id", "candidates"],
  [ErrorReason.AUDIT_RECORD_NOT_FOUND]: ["sequence"],
  [ErrorReason.AUDIT_DAY_NOT_SEALED]: ["day", "seal_time"],
  [ErrorReason.AUDIT_PROOF_UNAVAILABLE]: ["day"],
  [ErrorReason.REPLICA_TOO_OLD]: ["replicas"],
  [ErrorReason.CONTRACT_NOT_FOUND]: ["contract"],
  [ErrorReason.CONTRACT_EXISTS]: ["contract"],
  [ErrorReason.ATTESTATION_NOT_FOUND]: ["attestation"],
  [ErrorReason.ATTESTATION_EXISTS]: ["attestation"],
  [ErrorReason.UNKNOWN_CHECK]: ["check"],
  [ErrorReason.UNSUPPORTED_PATTERN]: ["pattern"],
  [ErrorReason.CHECK_TIMEOUT]: ["limit_ms"],
  [ErrorReason.LOG_SIZE_UNKNOWN]: ["tree_size"],
  [ErrorReason.REVIEW_NOT_FOUND]: ["review"],
  [ErrorReason.REVIEW_CLOSED]: ["review", "state"],
  [ErrorReason.REVIEW_PENDING]: ["review"],
  [ErrorReason.CONFLICT_OF_INTEREST]: ["role"],
  [ErrorReason.VERIFICATION_FINAL]: ["verification"],
  [ErrorReason.DIGEST_MISMATCH]: ["expected", "actual"],
  [ErrorReason.INQUIRY_NOT_FOUND]: ["review", "inquiry"],
  [ErrorReason.INQUIRY_ANSWERED]: ["review", "inquiry"],
  [ErrorReason.LOG_HEAD_OLDER]: ["size"],
  [ErrorReason.LOG_HEAD_CONTRADICTS]: ["size"],
  [ErrorReason.LOG_HEAD_MOVED]: ["size"],
  [ErrorReason.WITNESSED_PLATFORM_NOT_FOUND]: ["platform"],
  [ErrorReason.PROTOCOL_VERSION_UNSUPPORTED]: ["version", "supported"],
  [ErrorReason.CONTENT_TYPE_UNSUPPORTED]: ["media_type"],
  [ErrorReason.EXTENSION_REQUIRED]: ["extension"],
  [ErrorReason.AGENT_RESPONSE_INVALID]: ["agent"],
  [ErrorReason.EXTENDED_CARD_NOT_FOUND]: ["agent"],
} as const satisfies { readonly [Reason in ErrorReason]?: readonly string[] };

type Required = typeof REQUIRED_METADATA;

/**
 * The metadata keys that a refusal with this reason must carry. For a union of reasons, the type has the keys of all
 * these reasons.
 */
export type RequiredKey<Reason extends ErrorReason> = Reason extends keyof Required
  ? Required[Reason] extends readonly (infer Key extends string)[]
    ? Key
    : never
  : never;

const byReason = new Map<number, readonly string[]>(
  Object.entries(REQUIRED_METADATA).map(([reason, keys]) => [Number(reason), keys]),
);

/** Returns the keys that every refusal of a reason carries. */
export function requiredMetadata(reason: ErrorReason): readonly string[] {
  return byReason.get(reason) ?? [];
}
