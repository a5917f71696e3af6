import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { durationFromMs } from "@bufbuild/protobuf/wkt";
import { TaskAcceptedSchema, TaskStartedSchema } from "@depute/contracts/depute/tasks/v1/task_event_pb";
import { TaskLimitsSchema } from "@depute/contracts/depute/tasks/v1/task_pb";
import { type TaskDraft, TaskDraftSchema } from "@depute/contracts/depute/tasks/v1/task_service_pb";
import { type Lease, LeaseSchema } from "@depute/contracts/depute/tasks/v1/worker_service_pb";
import { advance } from "../core/rules/advance.ts";
import { type Admission, newTask } from "../core/rules/new-task.ts";
import type { TaskRecord } from "../core/rules/record.ts";

/** The time at which the bench's clock begins, epoch milliseconds. */
export const T0 = Date.UTC(2026, 0, 1);

export const ADMISSION: Admission = {
  delegator: "local",
  agentId: "worker",
  agentPrincipal: "",
  capabilityId: "",
  capabilityHash: "",
  outputSchema: "",
  delegationId: "",
  contractDeadlineMs: undefined,
  overseerId: "",
  overseerPrincipal: "",
};

/** Creates a task's limits from milliseconds. */
export function limits(ms: { total?: number; queue?: number; attempt?: number; heartbeat?: number }) {
  const entries = Object.entries(ms).map(([limit, value]) => [limit, durationFromMs(value)]);
  return create(TaskLimitsSchema, Object.fromEntries(entries));
}

export function draftOf(init: MessageInitShape<typeof TaskDraftSchema> = {}): TaskDraft {
  return create(TaskDraftSchema, { agentId: "worker", description: "say hello", ...init });
}

export function pending(init: MessageInitShape<typeof TaskDraftSchema> = {}): TaskRecord {
  return newTask("t1", draftOf(init), ADMISSION, T0).record;
}

export function accepted(record: TaskRecord, nowMs: number): TaskRecord {
  const value = create(TaskAcceptedSchema, { worker: "w", attempt: record.task.attempt + 1 });
  return advance(record, { payload: { case: "accepted", value }, by: "worker", holder: "s1" }, nowMs).record;
}

export function started(record: TaskRecord, nowMs: number): TaskRecord {
  const value = create(TaskStartedSchema, { attempt: record.task.attempt });
  return advance(record, { payload: { case: "started", value }, by: "worker" }, nowMs).record;
}

export function leaseOf({ task, epoch }: TaskRecord): Lease {
  return create(LeaseSchema, { taskId: task.id, epoch: BigInt(epoch) });
}
