import { create } from "@bufbuild/protobuf";
import { MessageEffect, MessageOrigin } from "@depute/contracts/depute/tasks/v1/message_service_pb";
import { TaskCompletedSchema, TaskSubmittedSchema } from "@depute/contracts/depute/tasks/v1/task_event_pb";
import { TaskOutputSchema, TaskStatus } from "@depute/contracts/depute/tasks/v1/task_pb";
import type { WriteTx } from "@depute/store";
import { advance, type Step } from "../core/rules/advance.ts";
import type { TaskRecord } from "../core/rules/record.ts";
import { isTerminal, stateConflict } from "../core/rules/state-machine.ts";
import { insertHeldResult } from "../core/store/work-rows.ts";
import { contentValue } from "./content.ts";
import type { CapContext } from "./context.ts";
import { post } from "./post.ts";
import type { StoredMessage } from "./rows.ts";
import { type Words, wordsOf } from "./rules/message.ts";
import type { Intent } from "./rules/permit.ts";
import type { Sending } from "./send.ts";
import { type CapTask, readCapTask, waitersFor } from "./task-rows.ts";
import { held, holds } from "./worker.ts";

/** Characters of the short form of a result. */
const MAX_MINIMAL = 2000;

/**
 * Completes the task that the sender holds, with the message as its result. That of an agent with an overseer is handed in
 * and goes to the overseer first; its delegator gets it when it is approved.
 */
export async function complete(
  tx: WriteTx,
  cap: CapContext,
  { message, kind, sender }: Sending,
  {
    task: { taskId, overseerId, delegatorId, reviewsId },
    carries = "",
  }: Extract<Intent, { does: "complete" }>,
): Promise<StoredMessage> {
  const { engine } = cap.tasks;
  await handIn(tx, cap, taskId, sender.id, wordsOf(kind));
  if (overseerId === "") {
    const to = await waitersFor(tx, { capTaskId: taskId, delegatorId, reviewsId });
    return post(tx, engine, { message, effect: MessageEffect.COMPLETED, to, carries });
  }
  return post(tx, engine, {
    message,
    effect: MessageEffect.SUBMITTED,
    origin: MessageOrigin.PLATFORM,
    to: [overseerId],
  });
}

/**
 * Gives the result of a task that an agent's inbox holds. It completes the task, or is held where the agent has an
 * overseer.
 *
 * @throws DeputeError TASK_STATE_CONFLICT when another worker of the agent has it
 */
export async function handIn(
  tx: WriteTx,
  { tasks: { engine }, told }: CapContext,
  capTaskId: string,
  agentId: string,
  words: Words,
): Promise<void> {
  const task = await readCapTask(tx, capTaskId);
  if (task === undefined) throw new Error(`there is no task ${capTaskId}`);
  told.add(tx, task.taskId);
  await engine.changeWithin(tx, task.taskId, async (before, nowMs) => {
    const { record, events } = held(before, agentId, nowMs);
    if (!holds(record, agentId)) throw stateConflict(capTaskId, record.task.status, TaskStatus.COMPLETED);
    const last = advance(record, await resultStep(tx, record, words), nowMs);
    return { record: last.record, events: [...events, ...last.events] };
  });
}

async function resultStep(tx: WriteTx, { task }: TaskRecord, words: Words): Promise<Step> {
  const value = create(TaskCompletedSchema, { output: outputOf(words) });
  const common = { by: "worker", settles: "complete" } as const;
  if (task.overseerId === "") return { ...common, payload: { case: "completed", value } };
  await insertHeldResult(tx, task.id, value);
  const submitted = create(TaskSubmittedSchema, { attempt: task.attempt, overseerId: task.overseerId });
  return { ...common, payload: { case: "submitted", value: submitted } };
}

/** Completes the review that an overseer settled, with what it decided; one that another worker has stays with it. */
export async function settleReview(
  tx: WriteTx,
  { tasks: { engine }, told }: CapContext,
  { taskId, agentId }: CapTask,
  words: Words,
): Promise<void> {
  told.add(tx, taskId);
  await engine.changeWithin(tx, taskId, (before, nowMs) => {
    if (isTerminal(before.task.status)) return { record: before, events: [] };
    const { record, events } = held(before, agentId, nowMs);
    if (!holds(record, agentId)) return { record: before, events: [] };
    const value = create(TaskCompletedSchema, { output: outputOf(words) });
    const last = advance(
      record,
      { payload: { case: "completed", value }, by: "worker", settles: "complete" },
      nowMs,
    );
    return { record: last.record, events: [...events, ...last.events] };
  });
}

function outputOf({ text, attachments }: Words) {
  return create(TaskOutputSchema, {
    full: contentValue(text, attachments),
    minimal: Array.from(text).slice(0, MAX_MINIMAL).join(""),
  });
}
