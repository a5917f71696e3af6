import { create, type JsonObject } from "@bufbuild/protobuf";
import {
  ErrorCode,
  type ExecutionError,
  ExecutionErrorSchema,
} from "@depute/contracts/agenta/delegation/v0/execution_receipt_pb";

/** The ways in which an execution can fail. (Agenta protocol manifest, `failure_modes`) */
export const FAILURE_MODES = {
  protocol_level: ["schema_validation_failure", "offer_version_mismatch", "budget_authorization_missing"],
  execution_time: ["capacity_unavailable", "upstream_dependency_failed", "deadline_exceeded"],
  verification: ["output_schema_violation", "required_evidence_missing", "digest_mismatch"],
} as const;

export type FailureMode = (typeof FAILURE_MODES)[keyof typeof FAILURE_MODES][number];

/**
 * Maps each failure mode to the error code in receipts. The mapping is Depute's choice, because the protocol relates no
 * failure mode to an error code.
 */
export const CODE_OF_MODE: Readonly<Record<FailureMode, ErrorCode>> = {
  schema_validation_failure: ErrorCode.INVALID_REQUEST,
  offer_version_mismatch: ErrorCode.OFFER_VERSION_MISMATCH,
  budget_authorization_missing: ErrorCode.BUDGET_EXCEEDED,
  capacity_unavailable: ErrorCode.CAPACITY_UNAVAILABLE,
  upstream_dependency_failed: ErrorCode.UPSTREAM_DEPENDENCY_FAILED,
  deadline_exceeded: ErrorCode.DEADLINE_EXCEEDED,
  output_schema_violation: ErrorCode.VERIFICATION_FAILED,
  required_evidence_missing: ErrorCode.VERIFICATION_FAILED,
  digest_mismatch: ErrorCode.VERIFICATION_FAILED,
};

/** Codes after which a repeated request may succeed. */
const RETRYABLE: readonly ErrorCode[] = [
  ErrorCode.CAPACITY_UNAVAILABLE,
  ErrorCode.UPSTREAM_DEPENDENCY_FAILED,
  ErrorCode.INTERNAL_ERROR,
];

/**
 * Maximum length of the error message in a receipt, in characters. (Agenta execution_receipt.schema.json
 * `error.message`)
 */
const MAX_MESSAGE = 2000;

/**
 * Builds the error of a receipt.
 *
 * @param what a failure mode of the manifest, or an error code for which the manifest has no mode; the error's
 * details name the mode
 */
export function failed(
  what: FailureMode | ErrorCode,
  message: string,
  details: JsonObject = {},
  retryable?: boolean,
): ExecutionError {
  const code = typeof what === "string" ? CODE_OF_MODE[what] : what;
  const all = typeof what === "string" ? { failure_mode: what, ...details } : details;
  return create(ExecutionErrorSchema, {
    code,
    message: message.slice(0, MAX_MESSAGE).toWellFormed(),
    retryable: retryable ?? RETRYABLE.includes(code),
    ...(Object.keys(all).length > 0 && { details: all }),
  });
}
