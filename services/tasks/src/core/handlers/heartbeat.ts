import { type Duration, durationMs } from "@bufbuild/protobuf/wkt";
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
import { isEndedLease, requireLease } from "../rules/lease.ts";
import { heartbeatIntervalMs, workDeadlineMs } from "../rules/limits.ts";
import type { TaskRecord } from "../rules/record.ts";
import { requireDelegate } from "../rules/visibility.ts";
import { readTask } from "../store/task-rows.ts";
import { type ProvidedInputs, readProvidedInputs } from "../store/work-rows.ts";
import { callerOf, type TasksContext, watchOptions } from "./context.ts";

/** The stored data that a heartbeat reads: the task's record, and the answers to the worker's questions. */
interface Found {
  readonly record: TaskRecord;
  readonly inputs: ProvidedInputs;
}

/**
 * Extends a lease and returns a directive. With `wait`, the call returns after the next change that concerns the
 * worker. It returns at the latest after `wait` or, if shorter, the heartbeat interval.
 *
 * @throws DeputeError TASK_NOT_FOUND, LEASE_LOST, and the errors of Authority.identify
 */
export async function heartbeat(
  tasks: TasksContext,
  lease: Lease,
  { inputsSeen, wait, usage, workExpireTime }: HeartbeatAssignmentRequest,
  context: HandlerContext,
) {
  const caller = await callerOf(tasks, context);
  const knownExpiry = workExpireTime && fromTimestamp(workExpireTime);
  let inputs: ProvidedInputs = { providedInputs: [], providedMessages: [] };
  let spendLeft: SpendBudget | undefined;
  const record = await tasks.engine.change(lease.taskId, async (before, nowMs, tx) => {
    requireDelegate(caller, before);
    if (isEndedLease(before, lease)) return { record: before, events: [] };
    requireLease(before, lease);
    inputs = await readProvidedInputs(tx, lease.taskId, inputsSeen);
    const over = await noteUsage(tx, before.task, usage);
    if (over !== undefined) return advance(before, { payload: overspent(over), by: "worker" }, nowMs);
    spendLeft = await readSpendLeft(tx, before.task);
    return { record: extendLease(before, nowMs), events: [] };
  });
  const waitMs = Math.min(ms(wait), heartbeatIntervalMs(record.task));
  if (waitMs === 0 || isWorthTelling({ record, inputs }, lease, knownExpiry))
    return answer(lease, knownExpiry, record, inputs, spendLeft);

  const look = () =>
    tasks.engine.store.read(async (tx): Promise<Found | undefined> => {
      const current = await readTask(tx, lease.taskId);
      if (current === undefined) return undefined;
      const found = { record: current, inputs: await readProvidedInputs(tx, lease.taskId, inputsSeen) };
      return isWorthTelling(found, lease, knownExpiry) ? found : undefined;
    });
  const news = await waitFor({ ...watchOptions(tasks), pollMs: waitMs }, lease.taskId, waitMs, context, look);
  if (news === undefined) return answer(lease, knownExpiry, record, inputs, spendLeft);
  if (!isEndedLease(news.record, lease)) requireLease(news.record, lease);
  return answer(lease, knownExpiry, news.record, news.inputs, spendLeft);
}

/**
 * Whether a waiting heartbeat must return now: the worker has not seen an answer, the lease is lost, or the directive
 * is not CONTINUE.
 */
function isWorthTelling({ record, inputs }: Found, lease: Lease, knownExpiry: number | undefined): boolean {
  return (
    inputs.providedInputs.length > 0 ||
    BigInt(record.epoch) !== lease.epoch ||
    record.hold === undefined ||
    directiveOf(record, lease, knownExpiry).directive !== WorkerDirective.CONTINUE
  );
}

function answer(
  lease: Lease,
  knownExpiry: number | undefined,
  record: TaskRecord,
  inputs: ProvidedInputs,
  spendLeft: SpendBudget | undefined,
) {
  const directive = directiveOf(record, lease, knownExpiry);
  const { hold, task } = record;
  if (hold === undefined) return directive;
  return {
    ...directive,
    leaseExpireTime: toTimestamp(hold.leaseExpireMs),
    workExpireTime: toTimestamp(workDeadlineMs(task, hold)),
    ...inputs,
    ...(task.budget && { budget: task.budget }),
    ...(spendLeft && { spendLeft }),
  };
}

function ms(duration: Duration | undefined): number {
  return duration === undefined ? 0 : durationMs(duration);
}
