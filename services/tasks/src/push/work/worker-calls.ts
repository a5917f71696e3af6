import type { Client } from "@connectrpc/connect";
import { WorkFailure } from "@depute/client";
import type { WorkerService } from "@depute/contracts/depute/tasks/v1/worker_service_pb";
import { ErrorReason, reasonName } from "@depute/core";
import { fromConnectError } from "@depute/service";
import type { TaskEngine } from "../../core/index.ts";

/** What an endpoint gave and the platform does not take; the same again would not be taken either. */
const FINAL: ReadonlySet<ErrorReason> = new Set([
  ErrorReason.OUTPUT_SCHEMA_VIOLATION,
  ErrorReason.LIMIT_EXCEEDED,
  ErrorReason.INVALID_REQUEST,
]);

/**
 * The calls of a worker that is part of the service, and works for any agent: the same handlers as for others, with leases
 * and epochs as theirs.
 */
export function ownWorkerCalls({ calls }: TaskEngine["workers"]): Client<typeof WorkerService> {
  return {
    ...calls,
    reportPartial: (request, options) => taken(calls.reportPartial(request, options)),
    completeAssignment: (request, options) => taken(calls.completeAssignment(request, options)),
  };
}

async function taken<T>(call: Promise<T>): Promise<T> {
  try {
    return await call;
  } catch (thrown) {
    const { reason, message } = fromConnectError(thrown);
    if (!FINAL.has(reason)) throw thrown;
    throw new WorkFailure(reasonName(reason), message, false);
  }
}
