import { ConnectError } from "@connectrpc/connect";
import type { TaskStatus } from "@depute/contracts/depute/tasks/v1/task_pb";
import { BadRequestSchema, ErrorInfoSchema } from "@depute/contracts/google/rpc/error_details_pb";
import { ERROR_DOMAIN, type ErrorReason, type FieldViolation } from "@depute/core";

/** The platform's error reasons, for example `TASK_NOT_FOUND`. (depute.errors.v1.ErrorReason) */
export type Reason = Exclude<keyof typeof ErrorReason, "UNSPECIFIED">;

/** Thrown for a task that ended without completing. */
export class TaskError extends Error {
  override readonly name = "TaskError";
  /** A name of {@link Reason}, or the worker's own reason. */
  readonly reason: string;
  /** The task's final status, for example `FAILED` or `CANCELLED`. */
  readonly status: keyof typeof TaskStatus;
  /** Whether a new task with the same work might succeed. */
  readonly retryable: boolean;

  constructor(
    status: keyof typeof TaskStatus,
    failure: { reason: string; message: string; retryable: boolean },
  ) {
    super(failure.message === "" ? failure.reason : `${failure.reason}: ${failure.message}`);
    this.reason = failure.reason;
    this.status = status;
    this.retryable = failure.retryable;
  }
}

/**
 * Returns the reason of an error, for programs. A text outside {@link Reason} is a worker's own reason, or a reason of
 * a newer platform.
 *
 * @returns undefined for an error that does not come from the platform, for example a refused connection
 */
export function reasonOf(error: unknown): Reason | (string & {}) | undefined {
  if (error instanceof TaskError) return error.reason;
  return errorInfo(error)?.reason;
}

/**
 * Returns the metadata of an error's reason; empty without a reason. The comments of
 * depute.errors.v1.ErrorReason list the keys.
 */
export function metadataOf(error: unknown): Readonly<Record<string, string>> {
  return errorInfo(error)?.metadata ?? {};
}

/** Returns the faulty fields of a refused request. */
export function violationsOf(error: unknown): FieldViolation[] {
  const details = ConnectError.from(error).findDetails(BadRequestSchema);
  return details.flatMap(({ fieldViolations }) =>
    fieldViolations.map(({ field, description, reason }) => ({ field, description, reason })),
  );
}

function errorInfo(error: unknown) {
  if (!(error instanceof ConnectError)) return undefined;
  return error.findDetails(ErrorInfoSchema).find(({ domain }) => domain === ERROR_DOMAIN);
}
