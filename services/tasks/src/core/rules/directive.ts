import type { Lease } from "@depute/contracts/depute/tasks/v1/worker_service_pb";
import { WorkerDirective } from "@depute/contracts/depute/tasks/v1/worker_service_pb";
import { isEndedLease } from "./lease.ts";
import { workDeadlineMs } from "./limits.ts";
import type { TaskRecord } from "./record.ts";
import { statusName } from "./state-machine.ts";

/** The instruction to a worker about its lease. */
export interface Directive {
  readonly directive: WorkerDirective;
  /**
   * Why the worker must stop, cancel or suspend, for people. Empty if the work continues, or if the delegator gave no
   * reason.
   */
  readonly reason: string;
}

/**
 * Returns the directive for a worker's call under a lease. The lease is the task's present lease, or the last lease of
 * an ended task.
 *
 * @param knownExpireMs the work deadline that the worker's call states, in epoch milliseconds; undefined if the call
 * states none
 */
export function directiveOf(record: TaskRecord, lease: Lease, knownExpireMs?: number): Directive {
  const { task } = record;
  if (isEndedLease(record, lease)) return { directive: WorkerDirective.STOP, reason: endReason(record) };
  if (task.cancellation !== undefined) {
    return { directive: WorkerDirective.CANCEL, reason: task.cancellation.reason };
  }
  if (task.suspensionRequest !== undefined) {
    return { directive: WorkerDirective.SUSPEND, reason: task.suspensionRequest };
  }
  if (knownExpireMs !== undefined && record.hold !== undefined) {
    const hasMoved = workDeadlineMs(task, record.hold) !== knownExpireMs;
    if (hasMoved) return { directive: WorkerDirective.DEADLINE_MOVED, reason: "" };
  }
  return { directive: WorkerDirective.CONTINUE, reason: "" };
}

/**
 * Returns the reason why a worker must stop: the failure's reason and message, or the status of a task that ended
 * without a failure.
 */
function endReason({ task: { status, failure } }: TaskRecord): string {
  if (failure === undefined) return statusName(status).toUpperCase();
  return failure.message === "" ? failure.reason : `${failure.reason}: ${failure.message}`;
}
