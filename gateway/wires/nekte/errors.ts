import type { TaskEvent } from "@depute/contracts/depute/tasks/v1/task_event_pb";
import { ErrorReason, reasonName } from "@depute/core";
import { errorTable, rowOf } from "../../edge/error-table.ts";
import { refusalIn } from "../../edge/fault.ts";
import { JSON_RPC, OWN } from "../../edge/own-codes.ts";

/**
 * NEKTE's own codes, from NEKTE 2 to 6. Where NEKTE states no number, the code is that of the published reference
 * library.
 */
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

/** The JSON-RPC code for each reason: NEKTE's own code if NEKTE defines one, otherwise JSON-RPC's or Depute's code. */
export const NEKTE_ERRORS = errorTable({
  VERSION_MISMATCH: NEKTE.VERSION_MISMATCH,
  CAPABILITY_NOT_FOUND: NEKTE.CAPABILITY_NOT_FOUND,
  // Counts as an invalid parameter, because `cap` must also name the agent.
  CAPABILITY_AMBIGUOUS: JSON_RPC.INVALID_PARAMS,
  BUDGET_EXCEEDED: NEKTE.BUDGET_EXCEEDED,
  CONTEXT_EXPIRED: NEKTE.CONTEXT_EXPIRED,
  // Counts as an invalid parameter, because an earlier request with this context id had a different body.
  CONTEXT_ID_TAKEN: JSON_RPC.INVALID_PARAMS,
  CONTEXT_PERMISSION_DENIED: NEKTE.CONTEXT_PERMISSION_DENIED,
  TASK_TIMEOUT: NEKTE.TASK_TIMEOUT,
  TASK_FAILED: NEKTE.TASK_FAILED,
  VERIFICATION_FAILED: NEKTE.VERIFICATION_FAILED,
  OUTPUT_SCHEMA_VIOLATION: NEKTE.TASK_FAILED,
  TASK_NOT_FOUND: NEKTE.TASK_NOT_FOUND,
  TASK_NOT_CANCELLABLE: NEKTE.TASK_NOT_CANCELLABLE,
  TASK_NOT_RESUMABLE: NEKTE.TASK_NOT_RESUMABLE,
  // Counts as an invalid parameter, because an earlier request with this task id had a different body.
  TASK_ID_TAKEN: JSON_RPC.INVALID_PARAMS,
  TOKEN_DENIED: OWN.TOKEN_DENIED,
});

/** The reasons whose NEKTE codes an error event of a task can contain. */
const ENDS = [
  ErrorReason.BUDGET_EXCEEDED,
  ErrorReason.CONTEXT_EXPIRED,
  ErrorReason.TASK_TIMEOUT,
  ErrorReason.TASK_FAILED,
  ErrorReason.VERIFICATION_FAILED,
  ErrorReason.TOKEN_DENIED,
  ErrorReason.EVENTS_PURGED,
] as const;

/**
 * Converts the NEKTE code of an error event to the reason in ENDS that has this code; to INTERNAL for any other code.
 */
export function reasonOfEnd(code: number): ErrorReason {
  return ENDS.find((reason) => rowOf(NEKTE_ERRORS, reason).code === code) ?? ErrorReason.INTERNAL;
}

/** Returns the NEKTE code of a thrown value. */
export function codeOf(thrown: unknown): number {
  return rowOf(NEKTE_ERRORS, refusalIn(thrown).reason).code;
}

/**
 * Returns metadata for an error of `nekte.v1.Nekte` on gRPC. The member `nekte_code` contains the NEKTE code, because
 * the gRPC status is less exact.
 */
export function errorNote(reason: ErrorReason): Readonly<Record<string, string>> {
  return { nekte_code: String(rowOf(NEKTE_ERRORS, reason).code) };
}

const CONTEXT_EXPIRED = reasonName(ErrorReason.CONTEXT_EXPIRED);

type End = Extract<TaskEvent["payload"], { case: "failed" | "rejected" | "expired" | "revoked" }>;

/**
 * Returns the NEKTE code of a task that ended without a result. The text of a worker cannot influence the code, because
 * only the platform sets the reason of an expired task.
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
