import { DeputeError, ErrorReason } from "@depute/core";
import { statusWord } from "./machine.ts";
import type { ExecutionRecord } from "./record.ts";

/** The refusal of an execution that is not there for this caller. */
export function executionNotFound(request: string): DeputeError {
  return new DeputeError(ErrorReason.EXECUTION_NOT_FOUND, "no such execution", { metadata: { request } });
}

/** The refusal of what an execution's state does not allow. */
export function stateConflict({ request, status }: ExecutionRecord, message: string): DeputeError {
  return new DeputeError(ErrorReason.EXECUTION_STATE_CONFLICT, message, {
    metadata: { request: request.requestId, status: statusWord(status) },
  });
}
