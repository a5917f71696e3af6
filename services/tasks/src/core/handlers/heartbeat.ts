import { type Duration, durationMs, type Value } from "@bufbuild/protobuf/wkt";
import type { HandlerContext } from "@connectrpc/connect";
import type { SpendBudget } from "@depute/contracts/depute/tasks/v1/task_pb";
import {
  type HeartbeatAssignmentRequest,
  type Lease,
  WorkerDirective,
} from "@depute/contracts/depute/tasks/v1/worker_service_pb";
import { fromTimestamp, toTimestamp } from "@depute/core";
import { waitFor } from "@depute/service";
import { noteUsage, readSpendLeft } from "../engine/spend.ts";
import { advance, extendLease } from "../rules/advance.ts";
import { overspent } from "../rules/apply-event.ts";
import { directiveOf } from "../rules/directive.ts";
import { isOver, requireLease } from "../rules/lease.ts";
import { heartbeatIntervalMs, workDeadlineMs } from "../rules/limits.ts";
import type { TaskRecord } from "../rules/record.ts";
import { requireDelegate } from "../rules/visibility.ts";
import { readTask } from "../store/task-rows.ts";
import { readProvidedInputs } from "../store/work-rows.ts";
import { callerOf, type TasksContext, watchOptions } from "./context.ts";

/** A task as a worker's heartbeat finds it. */
interface Found {
  readonly record: TaskRecord;
  readonly inputs: Value[];
}

/**
 * Extends a lease and says what to do with it; where the worker allows it, not before there is something to say.
 *
 * @throws DeputeError TASK_NOT_FOUND, LEASE_LOST
 */
export async function heartbeat(
  tasks: TasksContext,
  lease: Lease,
  { inputsSeen, wait, usage, workExpireTime }: HeartbeatAssignmentRequest,
  context: HandlerContext,
) {
  const caller = await callerOf(tasks, context);
  const known = workExpireTime && fromTimestamp(workExpireTime);
  let inputs: Value[] = [];
  let spendLeft: SpendBudget | undefined;
  const record = await tasks.engine.change(lease.taskId, async (before, nowMs, tx) => {
    requireDelegate(caller, before);
    if (isOver(before, lease)) return { record: before, events: [] };
    requireLease(before, lease);
    inputs = await readProvidedInputs(tx, lease.taskId, inputsSeen);
    const over = await noteUsage(tx, before.task, usage);
    if (over !== undefined) return advance(before, { payload: overspent(over), by: "worker" }, nowMs);
    spendLeft = await readSpendLeft(tx, before.task);
    return { record: extendLease(before, nowMs), events: [] };
  });
  const waitMs = Math.min(ms(wait), heartbeatIntervalMs(record.task));
  if (waitMs === 0 || isWorthTelling({ record, inputs }, lease, known))
    return answer(lease, known, record, inputs, spendLeft);

  const look = () =>
    tasks.engine.store.read(async (tx): Promise<Found | undefined> => {
      const present = await readTask(tx, lease.taskId);
      if (present === undefined) return undefined;
      const found = { record: present, inputs: await readProvidedInputs(tx, lease.taskId, inputsSeen) };
      return isWorthTelling(found, lease, known) ? found : undefined;
    });
  const found = await waitFor(
    { ...watchOptions(tasks), pollMs: waitMs },
    lease.taskId,
    waitMs,
    context,
    look,
  );
  if (found === undefined) return answer(lease, known, record, inputs, spendLeft);
  if (!isOver(found.record, lease)) requireLease(found.record, lease);
  return answer(lease, known, found.record, found.inputs, spendLeft);
}

/** Whether a worker that waits should hear of it now. */
function isWorthTelling({ record, inputs }: Found, lease: Lease, known: number | undefined): boolean {
  return (
    inputs.length > 0 ||
    BigInt(record.epoch) !== lease.epoch ||
    record.hold === undefined ||
    directiveOf(record, lease, known).directive !== WorkerDirective.CONTINUE
  );
}

function answer(
  lease: Lease,
  known: number | undefined,
  record: TaskRecord,
  providedInputs: Value[],
  spendLeft: SpendBudget | undefined,
) {
  const told = directiveOf(record, lease, known);
  const { hold, task } = record;
  if (hold === undefined) return told;
  return {
    ...told,
    leaseExpireTime: toTimestamp(hold.leaseExpireMs),
    workExpireTime: toTimestamp(workDeadlineMs(task, hold)),
    providedInputs,
    ...(task.budget && { budget: task.budget }),
    ...(spendLeft && { spendLeft }),
  };
}

function ms(duration: Duration | undefined): number {
  return duration === undefined ? 0 : durationMs(duration);
}
