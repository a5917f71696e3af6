import { DeputeError, ErrorReason } from "@depute/core";
import { statusWord } from "./machine.ts";
import type { ExecutionRecord } from "./record.ts";

/** Returns the error for an execution that does not exist, or that the caller may not see. */
export function executionNotFound(request: string): DeputeError {
  return new DeputeError(
    ErrorReason.EXECUTION_NOT_FOUND,
    "the execution does not exist, or the caller may not see it",
    { metadata: { request } },
  );
}

/** Returns the error for a call that the execution's status does not allow. */
export function stateConflict({ request, status }: ExecutionRecord, message: string): DeputeError {
  return new DeputeError(ErrorReason.EXECUTION_STATE_CONFLICT, message, {
    metadata: { request: request.requestId, status: statusWord(status) },
  });
}
