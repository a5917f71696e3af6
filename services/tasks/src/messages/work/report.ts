import { create } from "@bufbuild/protobuf";
import {
  CapMessageSchema,
  type DelegationNotice,
  DelegationNoticeSchema,
} from "@depute/contracts/cap/v1/message_pb";
import { MessageEffect, MessageOrigin } from "@depute/contracts/depute/tasks/v1/message_service_pb";
import { TaskStatus } from "@depute/contracts/depute/tasks/v1/task_pb";
import { ErrorReason } from "@depute/core";
import { fromConnectError } from "@depute/service";
import type { WriteTx } from "@depute/store";
import { failureOf } from "../../core/index.ts";
import { failureWord } from "../rules/error-actions.ts";
import { ORCHESTRATOR } from "../rules/participant.ts";
import type { Intent } from "../rules/permit.ts";
import { readMessage, type StoredMessage } from "../store/message-rows.ts";
import { holdersFrom, type Known, readKnown, replaceCapTask, waitersFor } from "../store/task-rows.ts";
import type { CapContext } from "./context.ts";
import { createPart, type PreparedDelegation, prepareDelegation } from "./delegate.ts";
import { post } from "./post.ts";
import type { Sending } from "./sending.ts";
import { inboxOf } from "./worker.ts";

type Report = Extract<Intent, { does: "report" }>;

/** Maximum number of characters of a failure's message in the store. */
const MAX_MESSAGE = 2000;

/** The notice that reassigns a failed task to another agent, and the facts of that delegation. */
export interface Reassignment {
  readonly notice: DelegationNotice;
  readonly delegation: PreparedDelegation;
}

/**
 * Finds the next agent for a task, if the reported error code requires reassignment. This agent is the first in the
 * notice's list that may get the task. Returns undefined for any other error code, and if no agent in the list may get
 * the task.
 */
export async function prepareReport(
  cap: CapContext,
  { context }: Sending,
  { task, error }: Report,
): Promise<Reassignment | undefined> {
  if (cap.settings.actionOf(error.errorCode) !== "reassign") return undefined;
  const heldTask = await cap.engine.store.read(async (tx) => {
    const knownTask = await readKnown(tx, cap.engine, task.taskId);
    const stored = knownTask && (await readMessage(tx, knownTask.cap.noticeId));
    const kind = stored?.message?.kind;
    if (knownTask === undefined || kind?.case !== "delegationNotice") return undefined;
    return { known: knownTask, notice: kind.value, holders: await holdersFrom(tx, task.taskId) };
  });
  if (heldTask === undefined) return undefined;
  const { known, notice, holders } = heldTask;
  for (const [index, recipientId] of notice.reassignTo.entries()) {
    if (holders.includes(recipientId)) continue;
    const reassigned = create(DelegationNoticeSchema, {
      ...notice,
      recipientId,
      reassignTo: notice.reassignTo.slice(index + 1),
    });
    try {
      const delegation = await prepareDelegation(cap, reassigned, known.record.task.delegator, context);
      return { notice: reassigned, delegation };
    } catch (thrown) {
      // Skips an agent to which the task may not be delegated. If the registry is unavailable, fails the call.
      if (fromConnectError(thrown).reason === ErrorReason.DEPENDENCY_UNAVAILABLE) throw thrown;
    }
  }
  return undefined;
}

/**
 * Applies the action for the error code that the task's holder reported in an error_response. (CAP "Observability &
 * Error Handling")
 */
export async function report(
  tx: WriteTx,
  cap: CapContext,
  { message, kind }: Sending,
  { task, error }: Report,
  reassignment: Reassignment | undefined,
): Promise<StoredMessage> {
  const knownTask = await readKnown(tx, cap.engine, task.taskId);
  if (knownTask === undefined) throw new Error(`the task ${task.taskId} does not exist`);
  const action = cap.settings.actionOf(error.errorCode);
  const canRetry = action === "retry";
  const hasEnded = await fail(tx, cap, knownTask, error.errorCode, error.errorMessage, canRetry);
  const effect = !hasEnded
    ? MessageEffect.RETRIED
    : reassignment === undefined
      ? MessageEffect.ESCALATED
      : MessageEffect.REASSIGNED;
  const { recipientId } = kind.value;
  const waiters = await waitersFor(tx, knownTask.cap);
  const to = effect === MessageEffect.ESCALATED ? [recipientId, ...waiters, ORCHESTRATOR] : [recipientId];
  const stored = await post(tx, cap, { message, effect, to });
  if (hasEnded && reassignment !== undefined) await reassign(tx, cap, knownTask, reassignment);
  return stored;
}

/**
 * Fails the holder's attempt.
 *
 * @returns whether the task has also failed; if not, it waits for a retry, or is suspended or cancelled as requested
 */
async function fail(
  tx: WriteTx,
  { engine, notified }: CapContext,
  { cap }: Known,
  errorCode: number,
  errorMessage: string,
  retryable: boolean,
): Promise<boolean> {
  notified.add(tx, cap.taskId);
  const text = Array.from(errorMessage).slice(0, MAX_MESSAGE).join("");
  const cause = failureOf(failureWord(errorCode), text, retryable);
  const { task } = await engine.failAttempt(tx, cap.taskId, inboxOf(cap.agentId), cause);
  return task.status === TaskStatus.FAILED;
}

/** Creates a new task for another agent under the same CAP task id. */
async function reassign(
  tx: WriteTx,
  cap: CapContext,
  { cap: before }: Known,
  { notice, delegation }: Reassignment,
): Promise<void> {
  const message = create(CapMessageSchema, { kind: { case: "delegationNotice", value: notice } });
  const stored = await post(tx, cap, {
    message,
    effect: MessageEffect.DELEGATED,
    origin: MessageOrigin.PLATFORM,
  });
  const taskId = await createPart(tx, cap, delegation, stored, before.taskId);
  await replaceCapTask(tx, { ...before, taskId, agentId: notice.recipientId, noticeId: stored.messageId });
}
