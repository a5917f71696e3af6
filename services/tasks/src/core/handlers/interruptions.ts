import { create, equals, toJson } from "@bufbuild/protobuf";
import { type Value, ValueSchema } from "@bufbuild/protobuf/wkt";
import type { HandlerContext } from "@connectrpc/connect";
import { TaskCheckpointedSchema } from "@depute/contracts/depute/tasks/v1/task_event_pb";
import {
  type Task,
  TaskEstimateSchema,
  TaskQuestionSchema,
  TaskStatus,
} from "@depute/contracts/depute/tasks/v1/task_pb";
import type {
  AcceptAssignmentRequest,
  Lease,
  RequestInputRequest,
  SaveCheckpointRequest,
  SuspendAssignmentRequest,
} from "@depute/contracts/depute/tasks/v1/worker_service_pb";
import { canonicalJson, invalid } from "@depute/core";
import { sha256Hex } from "@depute/core/sha256";
import type { WriteTx } from "@depute/store";
import { type Advance, advance, extendLease } from "../rules/advance.ts";
import { directiveOf } from "../rules/directive.ts";
import { isSettledBy, requireLease } from "../rules/lease.ts";
import type { TaskRecord } from "../rules/record.ts";
import { suspended } from "../rules/retry.ts";
import { checkValue, MAX_CHECKPOINT_BYTES, MAX_QUESTION_BYTES } from "../rules/values.ts";
import { requireDelegate } from "../rules/visibility.ts";
import { readCheckpointDigest, writeCheckpoint } from "../store/work-rows.ts";
import { callerOf, type TasksContext } from "./context.ts";
import { wholeOf } from "./task-service.ts";

/** Stores a checkpoint with its event. A repeated call with the same checkpoint only extends the lease. */
export async function saveCheckpoint(
  tasks: TasksContext,
  lease: Lease,
  { checkpoint }: SaveCheckpointRequest,
  context: HandlerContext,
) {
  if (checkpoint === undefined) throw invalid("checkpoint", "is required");
  checkValue(checkpoint, "checkpoint", MAX_CHECKPOINT_BYTES);
  const digest = digestOf(checkpoint);
  const caller = await callerOf(tasks, context);
  const record = await tasks.engine.change(lease.taskId, async (before, nowMs, tx) => {
    requireDelegate(caller, before);
    requireLease(before, lease);
    const after = await withCheckpoint(tx, before, { digest, checkpoint }, nowMs);
    return { record: extendLease(after.record, nowMs), events: after.events };
  });
  return directiveOf(record, lease);
}

/** Suspends a task at the request of its worker. */
export async function suspendAssignment(
  tasks: TasksContext,
  lease: Lease,
  { checkpoint, reason }: SuspendAssignmentRequest,
  context: HandlerContext,
): Promise<Task> {
  if (checkpoint !== undefined) checkValue(checkpoint, "checkpoint", MAX_CHECKPOINT_BYTES);
  const saved = checkpoint && { digest: digestOf(checkpoint), checkpoint };
  const caller = await callerOf(tasks, context);
  const suspendedNow = await tasks.engine.change(lease.taskId, async (before, nowMs, tx) => {
    requireDelegate(caller, before);
    if (isSettledBy(before, lease, "suspend")) return { record: before, events: [] };
    requireLease(before, lease);
    const first = saved === undefined ? keep(before) : await withCheckpoint(tx, before, saved, nowMs);
    const { task } = first.record;
    const payload = suspended(task, reason || (task.suspensionRequest ?? ""), false);
    const { record, events } = advance(first.record, { payload, by: "worker", settles: "suspend" }, nowMs);
    return { record, events: [...first.events, ...events] };
  });
  return wholeOf(tasks, suspendedNow);
}

/** Sends the worker's question to the delegator. A repeated call with the same question only extends the lease. */
export async function requestInput(
  tasks: TasksContext,
  lease: Lease,
  { question }: RequestInputRequest,
  context: HandlerContext,
): Promise<TaskRecord> {
  if (question === undefined) throw invalid("question", "is required");
  if (question.details !== undefined) checkValue(question.details, "question.details", MAX_QUESTION_BYTES);
  const caller = await callerOf(tasks, context);
  return tasks.engine.change(lease.taskId, (before, nowMs) => {
    requireDelegate(caller, before);
    requireLease(before, lease);
    const { status, question: open } = before.task;
    const isAsked = status === TaskStatus.INPUT_REQUIRED && open !== undefined;
    if (isAsked && equals(TaskQuestionSchema, open, question)) return keep(extendLease(before, nowMs));
    const payload = { case: "inputRequired", value: question } as const;
    const { record, events } = advance(before, { payload, by: "worker" }, nowMs);
    return { record: extendLease(record, nowMs), events };
  });
}

/** Records the worker's estimate. A repeated call with the same estimate only extends the lease. */
export async function acceptAssignment(
  tasks: TasksContext,
  lease: Lease,
  { estimate }: AcceptAssignmentRequest,
  context: HandlerContext,
): Promise<TaskRecord> {
  if (estimate === undefined) throw invalid("estimate", "is required");
  const caller = await callerOf(tasks, context);
  return tasks.engine.change(lease.taskId, (before, nowMs) => {
    requireDelegate(caller, before);
    requireLease(before, lease);
    const knownEstimate = before.task.estimate;
    if (knownEstimate !== undefined && equals(TaskEstimateSchema, knownEstimate, estimate))
      return keep(extendLease(before, nowMs));
    const { record, events } = advance(
      before,
      { payload: { case: "estimated", value: estimate }, by: "worker" },
      nowMs,
    );
    return { record: extendLease(record, nowMs), events };
  });
}

interface Saved {
  readonly digest: string;
  readonly checkpoint: Value;
}

async function withCheckpoint(
  tx: WriteTx,
  before: TaskRecord,
  { digest, checkpoint }: Saved,
  nowMs: number,
): Promise<Advance> {
  const { id, attempt } = before.task;
  if ((await readCheckpointDigest(tx, id)) === digest) return keep(before);
  const value = create(TaskCheckpointedSchema, {
    attempt,
    digest: new Uint8Array(Buffer.from(digest, "hex")),
  });
  const advanced = advance(before, { payload: { case: "checkpointed", value }, by: "worker" }, nowMs);
  await writeCheckpoint(tx, id, digest, checkpoint);
  return advanced;
}

function keep(record: TaskRecord): Advance {
  return { record, events: [] };
}

function digestOf(value: Value): string {
  return sha256Hex(canonicalJson(toJson(ValueSchema, value)));
}
