import type { CallOptions } from "@connectrpc/connect";
import type { Lease } from "@depute/contracts/depute/tasks/v1/worker_service_pb";
import { inspectToken, isFinalDenial } from "../queue/worker-token.ts";
import { advance } from "../rules/advance.ts";
import { requireLease } from "../rules/lease.ts";
import type { TaskRecord } from "../rules/record.ts";
import { revokedStep } from "../rules/revoke.ts";
import { readWorkerToken } from "../store/task-rows.ts";
import type { TasksContext } from "./context.ts";

/**
 * Requires that the worker token of a task is still valid. A task without a token passes. If the token was revoked or
 * has expired, ends the task as revoked.
 *
 * @throws DeputeError TOKEN_DENIED; LEASE_LOST if the lease ended during the check; DEPENDENCY_UNAVAILABLE (then
 * nothing has changed)
 */
export async function requireSoundToken(
  { engine, dependencies }: TasksContext,
  { task }: TaskRecord,
  lease: Lease,
  options: CallOptions,
): Promise<void> {
  if (task.delegationId === "") return;
  const token = await engine.store.read((tx) => readWorkerToken(tx, task.id));
  const question = { token, contractId: task.contractId, requiredCapabilities: [] };
  try {
    await inspectToken(dependencies.tokens, question, options);
  } catch (error) {
    if (!isFinalDenial(error)) throw error;
    await engine.change(task.id, (before, nowMs) => {
      requireLease(before, lease);
      return advance(before, revokedStep(`the worker's token is ${error.metadata.denial}`), nowMs);
    });
    throw error;
  }
}
