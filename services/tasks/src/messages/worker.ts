import { create } from "@bufbuild/protobuf";
import { TaskAcceptedSchema, TaskStartedSchema } from "@depute/contracts/depute/tasks/v1/task_event_pb";
import { TaskStatus } from "@depute/contracts/depute/tasks/v1/task_pb";
import type { WriteTx } from "@depute/store";
import { type Advance, advance, extendLease } from "../core/rules/advance.ts";
import type { TaskRecord } from "../core/rules/record.ts";
import type { CapContext } from "./context.ts";
import { readCapTask } from "./task-rows.ts";

/** The name that an inbox gives itself as a worker. */
const WORKER = "cap";

/** How long an agent that works by messages may be silent: it writes when it has something to say. Milliseconds. */
export const SILENCE_MS = 3_600_000;

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

/** Tasks that one sign of life is for. */
const MAX_TOUCHED = 100;

/**
 * Notes that an agent which works by messages is there: the leases of its inbox that are half over begin anew. Reading its
 * inbox, acknowledging and writing are signs of life; whoever falls silent loses its tasks as any worker does.
 */
export async function signOfLife({ tasks: { engine } }: CapContext, agentId: string): Promise<void> {
  const dueMs = engine.clock.now() + SILENCE_MS / 2;
  const due = await engine.store.read((tx) =>
    tx.all<{ task_id: string }>(
      "SELECT task_id FROM tasks WHERE holder = ? AND lease_expire_ms <= ? LIMIT ?",
      [holderOf(agentId), dueMs, MAX_TOUCHED],
    ),
  );
  if (due.length === 0) return;
  await engine.store.write(async (tx) => {
    for (const { task_id: taskId } of due) {
      await engine.changeWithin(tx, taskId, (record, nowMs) => ({
        record: holds(record, agentId) ? extendLease(record, nowMs) : record,
        events: [],
      }));
    }
  });
}
