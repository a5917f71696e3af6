import { type Client, createClient } from "@connectrpc/connect";
import { WorkFailure } from "@depute/client";
import { WorkerService } from "@depute/contracts/depute/tasks/v1/worker_service_pb";
import { ErrorReason, reasonName } from "@depute/core";
import { type Authority, createDirectTransport, fromConnectError, LOCAL_PRINCIPAL } from "@depute/service";
import type { TasksContext } from "../../core/handlers/context.ts";
import { workerService } from "../../core/handlers/worker-service.ts";

/** The platform itself. */
const OWN: Authority = {
  identify: async () => ({ principal: LOCAL_PRINCIPAL, local: true }),
  authorise: async () => ({ principal: LOCAL_PRINCIPAL, local: true, blocks: [] }),
};

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
export function ownWorkerCalls(tasks: TasksContext): Client<typeof WorkerService> {
  const service = workerService({ ...tasks, authority: OWN });
  const transport = createDirectTransport({ routes: (router) => router.service(WorkerService, service) });
  const calls = createClient(WorkerService, transport);
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
