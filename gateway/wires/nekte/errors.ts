import type { TaskEvent } from "@depute/contracts/depute/tasks/v1/task_event_pb";
import { ErrorReason, reasonName } from "@depute/core";
import { errorTable, rowOf } from "../../src/error-table.ts";
import { refusalIn } from "../../src/fault.ts";
import { JSON_RPC, OWN } from "../../src/own-codes.ts";

/** NEKTE's own codes (NEKTE 2 to 6, and its published reference library for those that the text does not number). */
export const NEKTE = {
  VERSION_MISMATCH: { code: -32001, message: "VERSION_MISMATCH" },
  CAPABILITY_NOT_FOUND: { code: -32002, message: "CAPABILITY_NOT_FOUND" },
  BUDGET_EXCEEDED: { code: -32003, message: "BUDGET_EXCEEDED" },
  CONTEXT_EXPIRED: { code: -32004, message: "CONTEXT_EXPIRED" },
  CONTEXT_PERMISSION_DENIED: { code: -32005, message: "CONTEXT_PERMISSION_DENIED" },
  TASK_TIMEOUT: { code: -32006, message: "TASK_TIMEOUT" },
  TASK_FAILED: { code: -32007, message: "TASK_FAILED" },
  VERIFICATION_FAILED: { code: -32008, message: "VERIFICATION_FAILED" },
  TASK_NOT_FOUND: { code: -32009, message: "TASK_NOT_FOUND" },
  TASK_NOT_CANCELLABLE: { code: -32010, message: "TASK_NOT_CANCELLABLE" },
  TASK_NOT_RESUMABLE: { code: -32011, message: "TASK_NOT_RESUMABLE" },
} as const;

/** Every reason as NEKTE says it: those that it numbers, and Depute's own codes for the rest. */
export const NEKTE_ERRORS = errorTable({
  VERSION_MISMATCH: NEKTE.VERSION_MISMATCH,
  CAPABILITY_NOT_FOUND: NEKTE.CAPABILITY_NOT_FOUND,
  // The parameter `cap` has to name the agent too.
  CAPABILITY_AMBIGUOUS: JSON_RPC.INVALID_PARAMS,
  BUDGET_EXCEEDED: NEKTE.BUDGET_EXCEEDED,
  CONTEXT_EXPIRED: NEKTE.CONTEXT_EXPIRED,
  // The same context id with another body.
  CONTEXT_ID_TAKEN: JSON_RPC.INVALID_PARAMS,
  CONTEXT_PERMISSION_DENIED: NEKTE.CONTEXT_PERMISSION_DENIED,
  TASK_TIMEOUT: NEKTE.TASK_TIMEOUT,
  TASK_FAILED: NEKTE.TASK_FAILED,
  VERIFICATION_FAILED: NEKTE.VERIFICATION_FAILED,
  OUTPUT_SCHEMA_VIOLATION: NEKTE.TASK_FAILED,
  TASK_NOT_FOUND: NEKTE.TASK_NOT_FOUND,
  TASK_NOT_CANCELLABLE: NEKTE.TASK_NOT_CANCELLABLE,
  TASK_NOT_RESUMABLE: NEKTE.TASK_NOT_RESUMABLE,
  // The same task id with another body.
  TASK_ID_TAKEN: JSON_RPC.INVALID_PARAMS,
  TOKEN_DENIED: OWN.TOKEN_DENIED,
});

/** Why delegated work ends without a result, as far as the platform itself says so. */
const ENDS = [
  ErrorReason.BUDGET_EXCEEDED,
  ErrorReason.CONTEXT_EXPIRED,
  ErrorReason.TASK_TIMEOUT,
  ErrorReason.TASK_FAILED,
  ErrorReason.VERIFICATION_FAILED,
  ErrorReason.TOKEN_DENIED,
  ErrorReason.EVENTS_PURGED,
] as const;

/** The reason behind the code of an error event. */
export function reasonOfEnd(code: number): ErrorReason {
  return ENDS.find((reason) => rowOf(NEKTE_ERRORS, reason).code === code) ?? ErrorReason.INTERNAL;
}

/** The NEKTE code of whatever was thrown. */
export function codeOf(thrown: unknown): number {
  return rowOf(NEKTE_ERRORS, refusalIn(thrown).reason).code;
}

/** What every error of `nekte.v1.Nekte` carries on gRPC, whose status says less: the NEKTE code, as `nekte_code`. */
export function errorNote(reason: ErrorReason): Readonly<Record<string, string>> {
  return { nekte_code: String(rowOf(NEKTE_ERRORS, reason).code) };
}

const CONTEXT_EXPIRED = reasonName(ErrorReason.CONTEXT_EXPIRED);

type End = Extract<TaskEvent["payload"], { case: "failed" | "rejected" | "expired" | "revoked" }>;

/**
 * The NEKTE code of a task that ended without a result. A worker's own words do not choose it: only the platform ends tasks as
 * expired.
 */
export function endCode({ case: end, value }: End, wasVerified: boolean): number {
  switch (end) {
    case "expired":
      return value.reason === CONTEXT_EXPIRED ? NEKTE.CONTEXT_EXPIRED.code : NEKTE.TASK_TIMEOUT.code;
    case "revoked":
      return OWN.TOKEN_DENIED.code;
    case "failed":
      return wasVerified ? NEKTE.VERIFICATION_FAILED.code : NEKTE.TASK_FAILED.code;
    case "rejected":
      return NEKTE.TASK_FAILED.code;
  }
}
