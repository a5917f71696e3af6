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
import type { CapContext } from "../handlers/context.ts";
import type { Sending } from "../handlers/send.ts";
import { failureWord } from "../rules/error-actions.ts";
import { ORCHESTRATOR } from "../rules/participant.ts";
import type { Intent } from "../rules/permit.ts";
import { readMessage, type StoredMessage } from "../store/message-rows.ts";
import { holdersFrom, type Known, readKnown, replaceCapTask, waitersFor } from "../store/task-rows.ts";
import { createPart, type PreparedDelegation, prepareDelegation } from "./delegate.ts";
import { post } from "./post.ts";
import { inboxOf } from "./worker.ts";

type Report = Extract<Intent, { does: "report" }>;

/** Characters of a failure's message that are kept. */
const MAX_MESSAGE = 2000;

/** Another agent that gets a task, and its notice. */
export interface Reassignment {
  readonly notice: DelegationNotice;
  readonly delegation: PreparedDelegation;
}

/** Finds who else gets the task, where the reported code asks for that: the first of the notice's list who may. */
export async function prepareReport(
  cap: CapContext,
  { context }: Sending,
  { task, error }: Report,
): Promise<Reassignment | undefined> {
  if (cap.settings.actionOf(error.errorCode) !== "reassign") return undefined;
  const found = await cap.engine.store.read(async (tx) => {
    const known = await readKnown(tx, cap.engine, task.taskId);
    const stored = known && (await readMessage(tx, known.cap.noticeId));
    const kind = stored?.message?.kind;
    if (known === undefined || kind?.case !== "delegationNotice") return undefined;
    return { known, notice: kind.value, holders: await holdersFrom(tx, task.taskId) };
  });
  if (found === undefined) return undefined;
  const { known, notice, holders } = found;
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
      // Who may not have it is passed over; a registry that is away decides nothing.
      if (fromConnectError(thrown).reason === ErrorReason.DEPENDENCY_UNAVAILABLE) throw thrown;
    }
  }
  return undefined;
}

/** Carries out what the code of its holder's error_response asks for. (CAP "Observability & Error Handling") */
export async function report(
  tx: WriteTx,
  cap: CapContext,
  { message, kind }: Sending,
  { task, error }: Report,
  reassignment: Reassignment | undefined,
): Promise<StoredMessage> {
  const known = await readKnown(tx, cap.engine, task.taskId);
  if (known === undefined) throw new Error(`there is no task ${task.taskId}`);
  const action = cap.settings.actionOf(error.errorCode);
  const canRetry = action === "retry";
  const hasEnded = await fail(tx, cap, known, error.errorCode, error.errorMessage, canRetry);
  const effect = !hasEnded
    ? MessageEffect.RETRIED
    : reassignment === undefined
      ? MessageEffect.ESCALATED
      : MessageEffect.REASSIGNED;
  const { recipientId } = kind.value;
  const waiters = await waitersFor(tx, known.cap);
  const to = effect === MessageEffect.ESCALATED ? [recipientId, ...waiters, ORCHESTRATOR] : [recipientId];
  const stored = await post(tx, cap, { message, effect, to });
  if (hasEnded && reassignment !== undefined) await reassign(tx, cap, known, reassignment);
  return stored;
}

/** Ends the holder's attempt. @returns whether the task has ended by it */
async function fail(
  tx: WriteTx,
  { engine, told }: CapContext,
  { cap }: Known,
  errorCode: number,
  errorMessage: string,
  retryable: boolean,
): Promise<boolean> {
  told.add(tx, cap.taskId);
  const text = Array.from(errorMessage).slice(0, MAX_MESSAGE).join("");
  const cause = failureOf(failureWord(errorCode), text, retryable);
  const { task } = await engine.failAttempt(tx, cap.taskId, inboxOf(cap.agentId), cause);
  return task.status === TaskStatus.FAILED;
}

/** Makes the task anew for another agent, under the same id. */
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
  const taskId = await createPart(tx, cap, delegation, before.taskId);
  await replaceCapTask(tx, { ...before, taskId, agentId: notice.recipientId, noticeId: stored.messageId });
}
