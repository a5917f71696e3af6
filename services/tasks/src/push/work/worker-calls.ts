import type { Client } from "@connectrpc/connect";
import { WorkFailure } from "@depute/client";
import type { WorkerService } from "@depute/contracts/depute/tasks/v1/worker_service_pb";
import { ErrorReason, reasonName } from "@depute/core";
import { fromConnectError } from "@depute/service";
import type { TaskEngine } from "../../core/index.ts";

/** Errors that a repeated report of the same result would get again. */
const FINAL: ReadonlySet<ErrorReason> = new Set([
  ErrorReason.OUTPUT_SCHEMA_VIOLATION,
  ErrorReason.LIMIT_EXCEEDED,
  ErrorReason.INVALID_REQUEST,
]);

/**
 * Returns a client of WorkerService inside this process, for any agent. The handlers of WorkerService serve its calls,
 * so leases and epochs apply.
 */
export function ownWorkerCalls({ calls }: TaskEngine["workers"]): Client<typeof WorkerService> {
  return {
    ...calls,
    reportPartial: (request, options) => unlessTaken(calls.reportPartial(request, options)),
    completeAssignment: (request, options) => unlessTaken(calls.completeAssignment(request, options)),
  };
}

async function unlessTaken<T>(call: Promise<T>): Promise<T> {
  try {
    return await call;
  } catch (thrown) {
    const { reason, message, metadata } = fromConnectError(thrown);
    // An error with `retry_after_ms` comes from a quota, so a retry may succeed.
    if (!FINAL.has(reason) || metadata.retry_after_ms !== undefined) throw thrown;
    throw new WorkFailure(reasonName(reason), message, false);
  }
}
