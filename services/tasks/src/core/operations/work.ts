import { create } from "@bufbuild/protobuf";
import {
  TaskAcceptedSchema,
  TaskCompletedSchema,
  TaskStartedSchema,
} from "@depute/contracts/depute/tasks/v1/task_event_pb";
import { type TaskFailure, TaskStatus } from "@depute/contracts/depute/tasks/v1/task_pb";
import type { WriteTx } from "@depute/store";
import type { Engine } from "../engine/engine.ts";
import type { Completion, NamedWorker } from "../port.ts";
import { type Advance, advance, extendLease } from "../rules/advance.ts";
import type { TaskRecord } from "../rules/record.ts";
import { afterFailedAttempt, suspended } from "../rules/retry.ts";
import { leasesDueOf } from "../store/queue-rows.ts";
import { holdForReview } from "./hold-for-review.ts";

/** Maximum number of leases that one call extends. */
const MAX_LEASES = 100;

/** Implements `TaskEngine.hold`. */
export async function hold(tx: WriteTx, engine: Engine, taskId: string, worker: NamedWorker): Promise<void> {
  await engine.changeWithin(tx, taskId, (before, nowMs) => begun(before, worker, nowMs));
}

/** Implements `TaskEngine.keepAlive`. */
export async function keepAlive(engine: Engine, holder: string, beforeMs: number): Promise<void> {
  const due = await engine.store.read((tx) => leasesDueOf(tx, holder, beforeMs, MAX_LEASES));
  if (due.length === 0) return;
  await engine.store.write(async (tx) => {
    for (const taskId of due) {
      await engine.changeWithin(tx, taskId, (record, nowMs) => ({
        record: holds(record, holder) ? extendLease(record, nowMs) : record,
        events: [],
      }));
    }
  });
}

/** Implements `TaskEngine.complete`. */
export async function complete(
  tx: WriteTx,
  engine: Engine,
  taskId: string,
  { worker, output, fromAnyWorker = false, isUnreviewed = false }: Completion,
): Promise<boolean> {
  let isCompleted = false;
  await engine.changeWithin(tx, taskId, async (before, nowMs) => {
    const { record, events } = fromAnyWorker
      ? startedByAny(before, worker, nowMs)
      : begun(before, worker, nowMs);
    const mayComplete = fromAnyWorker
      ? record.task.status === TaskStatus.RUNNING
      : holds(record, worker.holder);
    if (!mayComplete) return { record: before, events: [] };
    isCompleted = true;
    const value = create(TaskCompletedSchema, { output });
    const step = { payload: { case: "completed", value }, by: "worker", settles: "complete" } as const;
    const last = advance(record, isUnreviewed ? step : await holdForReview(tx, record.task, step), nowMs);
    return { record: last.record, events: [...events, ...last.events] };
  });
  return isCompleted;
}

/** Implements `TaskEngine.failAttempt`. */
export async function failAttempt(
  tx: WriteTx,
  engine: Engine,
  taskId: string,
  worker: NamedWorker,
  failure: TaskFailure,
): Promise<TaskRecord> {
  return engine.changeWithin(tx, taskId, (before, nowMs) => {
    const { record, events } = begun(before, worker, nowMs);
    const payload = afterFailedAttempt(record.task, failure, { nowMs, random: engine.random });
    const last = advance(record, { payload, by: "worker", settles: "fail" }, nowMs);
    return { record: last.record, events: [...events, ...last.events] };
  });
}

/** Implements `TaskEngine.suspend`. */
export async function suspend(tx: WriteTx, engine: Engine, taskId: string): Promise<void> {
  await engine.changeWithin(tx, taskId, (before, nowMs) => {
    const payload = suspended(before.task, before.task.suspensionRequest ?? "", false);
    return advance(before, { payload, by: "worker", settles: "suspend" }, nowMs);
  });
}

function holds({ hold }: TaskRecord, holder: string): boolean {
  return hold?.holder === holder;
}

/**
 * Starts a pending task for the worker, or extends the lease if this worker holds it. Leaves tasks in other states
 * unchanged.
 */
function begun(record: TaskRecord, worker: NamedWorker, nowMs: number): Advance {
  if (record.task.status === TaskStatus.PENDING) return started(accepted(record, worker, nowMs), nowMs);
  return { record: holds(record, worker.holder) ? extendLease(record, nowMs) : record, events: [] };
}

/**
 * Starts a pending task for this worker, or an accepted task for the worker that holds its lease. Leaves tasks in other
 * states unchanged.
 */
function startedByAny(record: TaskRecord, worker: NamedWorker, nowMs: number): Advance {
  const { status } = record.task;
  if (status === TaskStatus.PENDING) return started(accepted(record, worker, nowMs), nowMs);
  return status === TaskStatus.ACCEPTED ? started({ record, events: [] }, nowMs) : { record, events: [] };
}

function accepted(record: TaskRecord, { worker, holder }: NamedWorker, nowMs: number): Advance {
  const value = create(TaskAcceptedSchema, { worker, attempt: record.task.attempt + 1 });
  return advance(record, { payload: { case: "accepted", value }, by: "worker", holder }, nowMs);
}

function started({ record, events }: Advance, nowMs: number): Advance {
  const value = create(TaskStartedSchema, { attempt: record.task.attempt });
  const next = advance(record, { payload: { case: "started", value }, by: "worker" }, nowMs);
  return { record: next.record, events: [...events, ...next.events] };
}
