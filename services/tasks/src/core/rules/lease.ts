import type { Lease } from "@depute/contracts/depute/tasks/v1/worker_service_pb";
import { DeputeError, ErrorReason } from "@depute/core";
import type { Hold, Settlement, TaskRecord } from "./record.ts";
import { isHeld, isTerminal, statusName } from "./state-machine.ts";

/**
 * Returns the task's hold if the lease is the task's current lease.
 *
 * @throws DeputeError LEASE_LOST when the task was dispatched again, has no lease, or has ended
 */
export function requireLease(record: TaskRecord, lease: Lease): Hold {
  const { task, epoch, hold } = record;
  if (BigInt(epoch) !== lease.epoch) throw leaseLost(lease, "the task was dispatched to a worker again");
  if (isTerminal(task.status)) throw leaseLost(lease, `the task is ${statusName(task.status)}`);
  if (hold === undefined || !isHeld(task.status)) throw leaseLost(lease, "the lease has ended");
  return hold;
}

/** Whether a lease is the task's current lease. */
export function holdsLease({ task, epoch, hold }: TaskRecord, lease: Lease): boolean {
  return BigInt(epoch) === lease.epoch && hold !== undefined && isHeld(task.status);
}

/**
 * Whether an earlier call of the same kind has already ended this lease. A repeated call then succeeds and changes
 * nothing.
 */
export function isSettledBy(record: TaskRecord, lease: Lease, by: Settlement): boolean {
  const { settled } = record;
  return settled !== undefined && settled.by === by && BigInt(settled.epoch) === lease.epoch;
}

/** Whether the lease is the last lease of an ended task. The worker with this lease must stop. */
export function isEndedLease(record: TaskRecord, lease: Lease): boolean {
  return BigInt(record.epoch) === lease.epoch && isTerminal(record.task.status);
}

/** Returns the error for a call under a lease that has ended. */
export function leaseLost(lease: Lease, why: string): DeputeError {
  return new DeputeError(ErrorReason.LEASE_LOST, `the lease is lost: ${why}`, {
    metadata: { task: lease.taskId, epoch: String(lease.epoch) },
  });
}
