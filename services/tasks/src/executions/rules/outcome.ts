import {
  ErrorCode,
  type ExecutionError,
  ExecutionStatus,
} from "@depute/contracts/agenta/delegation/v0/execution_receipt_pb";
import type { TaskEvent } from "@depute/contracts/depute/tasks/v1/task_event_pb";
import type { TaskFailure } from "@depute/contracts/depute/tasks/v1/task_pb";
import { type FailureMode, failed } from "./refusal.ts";

/** The effect of a task's event on its execution. */
export interface Outcome {
  readonly status: ExecutionStatus;
  /** The reason in words for people; empty for none. */
  readonly reason: string;
  readonly error?: ExecutionError;
}

/** Maps the failure reasons of workers and of the task engine to Agenta's failure modes. */
const MODES: Readonly<Record<string, FailureMode>> = {
  CAPACITY_UNAVAILABLE: "capacity_unavailable",
  UPSTREAM_DEPENDENCY_FAILED: "upstream_dependency_failed",
  DEPENDENCY_UNAVAILABLE: "upstream_dependency_failed",
  DEADLINE_EXCEEDED: "deadline_exceeded",
  TASK_TIMEOUT: "deadline_exceeded",
  OUTPUT_SCHEMA_VIOLATION: "output_schema_violation",
  REQUIRED_EVIDENCE_MISSING: "required_evidence_missing",
  DIGEST_MISMATCH: "digest_mismatch",
  INVALID_REQUEST: "schema_validation_failure",
  INPUT_SCHEMA_VIOLATION: "schema_validation_failure",
};

const CODES: Readonly<Record<string, ErrorCode>> = {
  BUDGET_EXCEEDED: ErrorCode.BUDGET_EXCEEDED,
  BUYER_NOT_ALLOWED: ErrorCode.BUYER_NOT_ALLOWED,
  VERIFICATION_FAILED: ErrorCode.VERIFICATION_FAILED,
  REVIEW_REJECTED: ErrorCode.VERIFICATION_FAILED,
};

/** The task events for which {@link outcomeOf} may return an effect. */
export const DECISIVE: ReadonlySet<TaskEvent["payload"]["case"]> = new Set([
  "started",
  "completed",
  "failed",
  "revoked",
  "rejected",
  "cancelled",
  "expired",
]);

/**
 * Returns the effect of a task's event on its execution; undefined for none. The protocol has no transition for a
 * seller that declines an accepted execution. Depute's choice: the execution fails. Its failure mode is
 * `capacity_unavailable` unless the seller gives another reason.
 */
export function outcomeOf({ payload }: TaskEvent, status: ExecutionStatus): Outcome | undefined {
  switch (payload.case) {
    case "started":
      // An earlier attempt has already started the execution, so this attempt causes no transition.
      if (status !== ExecutionStatus.ACCEPTED) return undefined;
      return { status: ExecutionStatus.IN_PROGRESS, reason: "" };
    case "completed":
      return { status: ExecutionStatus.COMPLETED, reason: "" };
    case "failed":
    case "revoked":
      return failure(payload.value, ErrorCode.INTERNAL_ERROR);
    case "rejected":
      return failure(payload.value, "capacity_unavailable");
    case "cancelled": {
      const { reason } = payload.value;
      const error = failed(ErrorCode.CANCELLED_BY_BUYER, reason || "the buyer cancelled the execution");
      return { status: ExecutionStatus.CANCELLED, reason, error };
    }
    case "expired":
      return expiry(status);
    default:
      return undefined;
  }
}

/** Returns the outcome of an execution that has expired: its work did not begin in time, or its deadline has passed. */
export function expiry(status: ExecutionStatus): Outcome {
  const hasBegun = status === ExecutionStatus.IN_PROGRESS;
  const reason = hasBegun ? "the deadline passed before the work was done" : "the work did not begin in time";
  const error = hasBegun
    ? failed("deadline_exceeded", reason)
    : failed(ErrorCode.EXPIRED_BEFORE_START, reason);
  return { status: ExecutionStatus.EXPIRED, reason, error };
}

function failure({ reason, message, retryable }: TaskFailure, otherwise: FailureMode | ErrorCode): Outcome {
  const what = MODES[reason] ?? CODES[reason] ?? otherwise;
  const error = failed(what, message || reason, { reason }, retryable || undefined);
  return { status: ExecutionStatus.FAILED, reason: message, error };
}
