import type { TaskEvent } from "@depute/contracts/depute/tasks/v1/task_event_pb";
import { DeputeError } from "@depute/core";
import { refusalIn, rowOf } from "../../src/fault.ts";
import { type ErrorTable, JSON_RPC, OWN } from "../../src/own-codes.ts";

/** NEKTE's own codes (NEKTE 2 to 6, and its published reference library for those that the text does not number). */
export const NEKTE = {
  VERSION_MISMATCH: { code: -32001, message: "VERSION_MISMATCH" },
  CAPABILITY_NOT_FOUND: { code: -32002, message: "CAPABILITY_NOT_FOUND" },
  BUDGET_EXCEEDED: { code: -32003, message: "BUDGET_EXCEEDED" },
  CONTEXT_PERMISSION_DENIED: { code: -32005, message: "CONTEXT_PERMISSION_DENIED" },
  TASK_TIMEOUT: { code: -32006, message: "TASK_TIMEOUT" },
  TASK_FAILED: { code: -32007, message: "TASK_FAILED" },
  VERIFICATION_FAILED: { code: -32008, message: "VERIFICATION_FAILED" },
  TASK_NOT_FOUND: { code: -32009, message: "TASK_NOT_FOUND" },
  TASK_NOT_CANCELLABLE: { code: -32010, message: "TASK_NOT_CANCELLABLE" },
  TASK_NOT_RESUMABLE: { code: -32011, message: "TASK_NOT_RESUMABLE" },
} as const;

/** Every reason as NEKTE says it. */
export const NEKTE_ERRORS: ErrorTable = {
  UNSPECIFIED: JSON_RPC.INTERNAL_ERROR,
  INTERNAL: JSON_RPC.INTERNAL_ERROR,
  INVALID_REQUEST: JSON_RPC.INVALID_PARAMS,
  MALFORMED_JSON: JSON_RPC.INVALID_PARAMS,
  LIMIT_EXCEEDED: OWN.LIMIT_EXCEEDED,
  UNKNOWN_METHOD: JSON_RPC.METHOD_NOT_FOUND,
  UNAUTHENTICATED: OWN.UNAUTHENTICATED,
  CALLER_NOT_ALLOWED: OWN.NOT_ALLOWED,
  SHUTTING_DOWN: OWN.UNAVAILABLE,
  DEPENDENCY_UNAVAILABLE: OWN.UNAVAILABLE,
  REQUEST_ID_REUSED: JSON_RPC.INVALID_PARAMS,
  PAGE_TOKEN_INVALID: JSON_RPC.INVALID_PARAMS,
  DEADLINE_EXCEEDED: OWN.DEADLINE_EXCEEDED,
  SERVICE_UNKNOWN: OWN.NOT_FOUND,

  AGENT_NOT_FOUND: OWN.NOT_FOUND,
  CAPABILITY_NOT_FOUND: NEKTE.CAPABILITY_NOT_FOUND,
  // The parameter `cap` has to name the agent too.
  CAPABILITY_AMBIGUOUS: JSON_RPC.INVALID_PARAMS,
  VERSION_MISMATCH: NEKTE.VERSION_MISMATCH,
  AGENT_EXISTS: OWN.CONFLICT,
  SCHEMA_INVALID: JSON_RPC.INVALID_PARAMS,

  TASK_NOT_FOUND: NEKTE.TASK_NOT_FOUND,
  TASK_STATE_CONFLICT: OWN.WRONG_STATE,
  TASK_NOT_CANCELLABLE: NEKTE.TASK_NOT_CANCELLABLE,
  TASK_NOT_RESUMABLE: NEKTE.TASK_NOT_RESUMABLE,
  LEASE_LOST: OWN.CONFLICT,
  EVENTS_PURGED: OWN.WRONG_STATE,
  INPUT_SCHEMA_VIOLATION: JSON_RPC.INVALID_PARAMS,
  OUTPUT_SCHEMA_VIOLATION: NEKTE.TASK_FAILED,
  BUDGET_EXCEEDED: NEKTE.BUDGET_EXCEEDED,
  TASK_TIMEOUT: NEKTE.TASK_TIMEOUT,
  TASK_FAILED: NEKTE.TASK_FAILED,
  // The same task id with another body.
  TASK_ID_TAKEN: JSON_RPC.INVALID_PARAMS,
  CONTEXT_PERMISSION_DENIED: NEKTE.CONTEXT_PERMISSION_DENIED,

  TOKEN_DENIED: OWN.TOKEN_DENIED,
  TOKEN_NOT_FOUND: OWN.NOT_FOUND,
  ATTENUATION_VIOLATION: JSON_RPC.INVALID_PARAMS,
  SIGNATURE_INVALID: JSON_RPC.INVALID_PARAMS,
  NOT_AUTHORIZED_TO_REVOKE: OWN.NOT_ALLOWED,
  TOKEN_MALFORMED: JSON_RPC.INVALID_PARAMS,

  CONTRACT_NOT_FOUND: OWN.NOT_FOUND,
  CONTRACT_EXISTS: OWN.CONFLICT,
  ATTESTATION_NOT_FOUND: OWN.NOT_FOUND,
  ATTESTATION_EXISTS: OWN.CONFLICT,
  UNKNOWN_CHECK: JSON_RPC.INVALID_PARAMS,
  UNSUPPORTED_PATTERN: JSON_RPC.INVALID_PARAMS,
  CHECK_TIMEOUT: OWN.DEADLINE_EXCEEDED,
};

/** The NEKTE code of whatever was thrown. */
export function codeOf(thrown: unknown): number {
  return rowOf(NEKTE_ERRORS, refusalIn(thrown).reason).code;
}

/** The same refusal for gRPC, whose status says less: with the NEKTE code in its metadata, as `nekte_code`. */
export function withCode(thrown: unknown): DeputeError {
  const refusal = refusalIn(thrown);
  return new DeputeError(refusal.reason, refusal.message, {
    metadata: { ...refusal.metadata, nekte_code: String(codeOf(refusal)) },
    violations: refusal.violations,
    cause: refusal,
  });
}

type End = Extract<TaskEvent["payload"], { case: "failed" | "rejected" | "expired" | "revoked" }>;

/** The NEKTE code of a task that ended without a result. A worker's own words do not choose it. */
export function endCode(end: End["case"], wasVerified: boolean): number {
  switch (end) {
    case "expired":
      return NEKTE.TASK_TIMEOUT.code;
    case "revoked":
      return OWN.TOKEN_DENIED.code;
    case "failed":
      return wasVerified ? NEKTE.VERIFICATION_FAILED.code : NEKTE.TASK_FAILED.code;
    case "rejected":
      return NEKTE.TASK_FAILED.code;
  }
}
