import { create } from "@bufbuild/protobuf";
import { MessageEffect, MessageOrigin } from "@depute/contracts/depute/tasks/v1/message_service_pb";
import { TaskOutputSchema, TaskStatus } from "@depute/contracts/depute/tasks/v1/task_pb";
import type { WriteTx } from "@depute/store";
import { stateConflict } from "../../core/index.ts";
import type { CapContext } from "../handlers/context.ts";
import type { Sending } from "../handlers/send.ts";
import { contentValue } from "../rules/content.ts";
import { type Words, wordsOf } from "../rules/message.ts";
import type { Intent } from "../rules/permit.ts";
import type { StoredMessage } from "../store/message-rows.ts";
import { type CapTask, readCapTask, waitersFor } from "../store/task-rows.ts";
import { post } from "./post.ts";
import { inboxOf } from "./worker.ts";

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
  await handIn(tx, cap, taskId, sender.id, wordsOf(kind));
  if (overseerId === "") {
    const to = await waitersFor(tx, { capTaskId: taskId, delegatorId, reviewsId });
    return post(tx, cap, { message, effect: MessageEffect.COMPLETED, to, carries });
  }
  return post(tx, cap, {
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
  { engine, told }: CapContext,
  capTaskId: string,
  agentId: string,
  words: Words,
): Promise<void> {
  const task = await readCapTask(tx, capTaskId);
  if (task === undefined) throw new Error(`there is no task ${capTaskId}`);
  told.add(tx, task.taskId);
  const completion = { worker: inboxOf(agentId), output: outputOf(words) };
  if (await engine.complete(tx, task.taskId, completion)) return;
  const { status } = (await engine.find(tx, task.taskId))?.task ?? { status: TaskStatus.UNSPECIFIED };
  throw stateConflict(capTaskId, status, TaskStatus.COMPLETED);
}

/** Completes the review that an overseer settled, with what it decided; one that another worker has stays with it. */
export async function settleReview(
  tx: WriteTx,
  { engine, told }: CapContext,
  { taskId, agentId }: CapTask,
  words: Words,
): Promise<void> {
  told.add(tx, taskId);
  // A review that has ended, or that another worker of the overseer has, stays as it is.
  const completion = { worker: inboxOf(agentId), output: outputOf(words), isUnreviewed: true };
  await engine.complete(tx, taskId, completion);
}

function outputOf({ text, attachments }: Words) {
  return create(TaskOutputSchema, {
    full: contentValue(text, attachments),
    minimal: Array.from(text).slice(0, MAX_MINIMAL).join(""),
  });
}
