import type { Lease } from "@depute/contracts/depute/tasks/v1/worker_service_pb";
import { WorkerDirective } from "@depute/contracts/depute/tasks/v1/worker_service_pb";
import { isOver } from "./lease.ts";
import { workDeadlineMs } from "./limits.ts";
import type { TaskRecord } from "./record.ts";
import { statusName } from "./state-machine.ts";

/** What a worker is told to do with its lease. */
export interface Directive {
  readonly directive: WorkerDirective;
  /** For people; empty when the work goes on. */
  readonly reason: string;
}

/**
 * What the worker of a lease, which is the present one or that of a task's end, is to do.
 *
 * @param knownExpireMs when its work has to be over, as far as it knows; undefined where it does not say
 */
export function directiveOf(record: TaskRecord, lease: Lease, knownExpireMs?: number): Directive {
  const { task } = record;
  if (isOver(record, lease)) return { directive: WorkerDirective.STOP, reason: endReason(record) };
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

/** Why a worker has to stop: the failure's word and message, or the status of a task that ended well. */
function endReason({ task: { status, failure } }: TaskRecord): string {
  if (failure === undefined) return statusName(status).toUpperCase();
  return failure.message === "" ? failure.reason : `${failure.reason}: ${failure.message}`;
}
