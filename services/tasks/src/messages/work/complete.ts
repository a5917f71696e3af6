import { create } from "@bufbuild/protobuf";
import { MessageEffect, MessageOrigin } from "@depute/contracts/depute/tasks/v1/message_service_pb";
import { TaskOutputSchema, TaskStatus } from "@depute/contracts/depute/tasks/v1/task_pb";
import type { WriteTx } from "@depute/store";
import { stateConflict } from "../../core/index.ts";
import { contentValue } from "../rules/content.ts";
import { type Words, wordsOf } from "../rules/message.ts";
import type { Intent } from "../rules/permit.ts";
import type { StoredMessage } from "../store/message-rows.ts";
import { type CapTask, readCapTask, waitersFor } from "../store/task-rows.ts";
import type { CapContext } from "./context.ts";
import { post } from "./post.ts";
import type { Sending } from "./sending.ts";
import { inboxOf } from "./worker.ts";

/** Maximum length of the short form of a result (`minimal`), in characters. */
const MAX_MINIMAL = 2000;

/**
 * Completes the sender's task with the message as its result. If the sender has an overseer, holds the result. The
 * delegator then gets the result after the approval.
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
 * Submits the result of a task whose lease belongs to an agent's inbox. If the agent has an overseer, holds the result;
 * otherwise completes the task.
 *
 * @throws DeputeError TASK_STATE_CONFLICT if the task has ended, is suspended or in review, or if another worker of the
 * agent has the lease
 */
export async function handIn(
  tx: WriteTx,
  { engine, notified }: CapContext,
  capTaskId: string,
  agentId: string,
  words: Words,
): Promise<void> {
  const task = await readCapTask(tx, capTaskId);
  if (task === undefined) throw new Error(`the task ${capTaskId} does not exist`);
  notified.add(tx, task.taskId);
  const completion = { worker: inboxOf(agentId), output: outputOf(words) };
  if (await engine.complete(tx, task.taskId, completion)) return;
  const { status } = (await engine.find(tx, task.taskId))?.task ?? { status: TaskStatus.UNSPECIFIED };
  throw stateConflict(capTaskId, status, TaskStatus.COMPLETED);
}

/** Completes the review task after the overseer has decided. */
export async function settleReview(
  tx: WriteTx,
  { engine, notified }: CapContext,
  { taskId, agentId }: CapTask,
  words: Words,
): Promise<void> {
  notified.add(tx, taskId);
  // `complete` changes neither an ended review task nor a review task that another worker holds.
  const completion = { worker: inboxOf(agentId), output: outputOf(words), isUnreviewed: true };
  await engine.complete(tx, taskId, completion);
}

function outputOf({ text, attachments }: Words) {
  return create(TaskOutputSchema, {
    full: contentValue(text, attachments),
    minimal: Array.from(text).slice(0, MAX_MINIMAL).join(""),
  });
}
