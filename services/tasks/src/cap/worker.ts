import { create } from "@bufbuild/protobuf";
import { TaskAcceptedSchema, TaskStartedSchema } from "@depute/contracts/depute/tasks/v1/task_event_pb";
import { TaskStatus } from "@depute/contracts/depute/tasks/v1/task_pb";
import type { WriteTx } from "@depute/store";
import { type Advance, advance, extendLease } from "../rules/advance.ts";
import type { TaskRecord } from "../rules/record.ts";
import type { CapContext } from "./context.ts";
import { readCapTask } from "./task-rows.ts";

/** The name that an inbox gives itself as a worker. */
const WORKER = "cap";

/** Who holds a task for an agent that works by messages; no stream and no other worker has this name. */
export function holderOf(agentId: string): string {
  return `cap:${agentId}`;
}

/** Whether an agent's inbox holds a task. */
export function holds({ hold }: TaskRecord, agentId: string): boolean {
  return hold?.holder === holderOf(agentId);
}

/**
 * The task as its agent's inbox holds it: taken and begun, where it waited for a worker. One that another worker has
 * stays as it is. Everything that the agent does on it is a sign of life.
 */
export function held(record: TaskRecord, agentId: string, nowMs: number): Advance {
  const { status, attempt } = record.task;
  if (status !== TaskStatus.PENDING) {
    return { record: holds(record, agentId) ? extendLease(record, nowMs) : record, events: [] };
  }
  const accepted = advance(
    record,
    {
      payload: {
        case: "accepted",
        value: create(TaskAcceptedSchema, { worker: WORKER, attempt: attempt + 1 }),
      },
      by: "worker",
      holder: holderOf(agentId),
    },
    nowMs,
  );
  const value = create(TaskStartedSchema, { attempt: attempt + 1 });
  const started = advance(accepted.record, { payload: { case: "started", value }, by: "worker" }, nowMs);
  return { record: started.record, events: [...accepted.events, ...started.events] };
}

/** Takes the task of a notice for the agent that acknowledges it, if it waits. */
export async function takeByNotice(
  tx: WriteTx,
  { tasks: { engine } }: CapContext,
  agentId: string,
  capTaskId: string,
): Promise<void> {
  const task = await readCapTask(tx, capTaskId);
  if (task?.agentId !== agentId) return;
  await engine.changeWithin(tx, task.taskId, (record, nowMs) => held(record, agentId, nowMs));
}

/** Has the sender's inbox hold the task that the sender speaks about, where it is the sender's and waits. */
export async function heldIfOwn(
  tx: WriteTx,
  { tasks: { engine } }: CapContext,
  capTaskId: string,
  senderId: string,
): Promise<void> {
  const task = await readCapTask(tx, capTaskId);
  if (task?.agentId !== senderId) return;
  await engine.changeWithin(tx, task.taskId, (record, nowMs) => held(record, senderId, nowMs));
}
