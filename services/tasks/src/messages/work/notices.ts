import { create } from "@bufbuild/protobuf";
import { type CapMessage, CapMessageSchema, Verdict } from "@depute/contracts/cap/v1/message_pb";
import { MessageEffect, MessageOrigin } from "@depute/contracts/depute/tasks/v1/message_service_pb";
import type { TaskEvent } from "@depute/contracts/depute/tasks/v1/task_event_pb";
import { type Task, type TaskOutput, TaskStatus } from "@depute/contracts/depute/tasks/v1/task_pb";
import { ReviewVerdict } from "@depute/contracts/depute/verifier/v1/review_service_pb";
import { sha256Hex } from "@depute/core/sha256";
import type { ReadTx, WriteTx } from "@depute/store";
import {
  type Decision,
  isTerminal,
  type ReviewListener,
  statusName,
  type TaskChange,
  type TaskEventName,
  type TaskRecord,
} from "../../core/index.ts";
import { identityOf, toolResultsOf } from "../rules/attachments.ts";
import { asObject, saidIn } from "../rules/content.ts";
import { failureIn } from "../rules/error-actions.ts";
import { baseOf, ORCHESTRATOR, PLATFORM } from "../rules/participant.ts";
import { deleteHeld, insertHeld } from "../store/held-rows.ts";
import { deliver } from "../store/inbox-rows.ts";
import { hasToolResult } from "../store/lineage-rows.ts";
import { type CapTask, closeCapTask, findCapTask, reviewsOf, waitersFor } from "../store/task-rows.ts";
import { settleReview } from "./complete.ts";
import type { CapContext } from "./context.ts";
import { INBOX_TOPIC, post } from "./post.ts";
import { holds } from "./worker.ts";

/** Events of a task about which participants may need a message. */
const TOLD: ReadonlySet<TaskEventName> = new Set([
  "requeued",
  "resumed",
  "suspensionRequested",
  "submitted",
  "completed",
  "failed",
  "rejected",
  "cancelled",
  "expired",
  "revoked",
]);

/** Events that {@link Notices} observes: `TOLD`, and `changesRequested`, which ends the wait for an overseer. */
export const FOLLOWED: ReadonlySet<TaskEventName> = new Set([...TOLD, "changesRequested"]);

const VERDICTS: Partial<Record<ReviewVerdict, Verdict>> = {
  [ReviewVerdict.APPROVED]: Verdict.APPROVED,
  [ReviewVerdict.CHANGES_REQUESTED]: Verdict.CHANGES_REQUESTED,
  [ReviewVerdict.REJECTED]: Verdict.REJECTED,
};

/**
 * Notifies participants of changes that no CAP message caused. Such changes are an approval, a timeout, a decision in
 * the review queue, and a result from outside CAP.
 */
export class Notices implements ReviewListener {
  readonly #cap: CapContext;

  constructor(cap: CapContext) {
    this.#cap = cap;
  }

  /** Handles a change of a task in the transaction of the change. */
  async observe(tx: WriteTx, change: TaskChange): Promise<void> {
    const { before, after, events } = change;
    const { task } = after;
    // A task without an external id is not a CAP task, because CAP's dotted id is the external id.
    if (before === undefined || task.externalId === "") return;
    await this.#noteHeld(tx, before.task.status, task);
    if (!events.some(({ payload }) => TOLD.has(payload.case))) return;
    const cap = await findCapTask(tx, task.id);
    if (cap === undefined) return;
    if (isTerminal(task.status)) await closeCapTask(tx, task.id);
    if (task.status === TaskStatus.PENDING) return this.#deliverAgain(tx, cap);
    if (task.suspensionRequest !== undefined && holds(after, cap.agentId)) return this.#suspend(tx, cap);
    if (this.#cap.notified.has(tx, task.id)) return;
    if (task.status === TaskStatus.IN_REVIEW) return this.#notifyOverseer(tx, cap, task);
    if (task.status === TaskStatus.COMPLETED) {
      return this.#release(tx, cap, events, before.task.status === TaskStatus.IN_REVIEW);
    }
    if (isTerminal(task.status)) await this.#tellEnd(tx, cap, task);
  }

  /** Records that a result waits for its overseer; deletes the record when the wait ends. */
  async #noteHeld(tx: WriteTx, before: TaskStatus, { id, status, overseerId }: Task): Promise<void> {
    const isHeld = status === TaskStatus.IN_REVIEW;
    if (isHeld === (before === TaskStatus.IN_REVIEW)) return;
    if (!isHeld) return deleteHeld(tx, id);
    const cap = await findCapTask(tx, id);
    if (cap === undefined) return;
    const { capTaskId, agentId } = cap;
    await insertHeld(tx, { taskId: id, capTaskId, holder: baseOf(agentId), overseer: baseOf(overseerId) });
  }

  /**
   * Completes the review tasks of a decided result. If no message contained the decision, also sends the decision to
   * the result's author.
   */
  async deciding(tx: WriteTx, record: TaskRecord, decision: Decision, isOwn: boolean): Promise<void> {
    const cap = await this.#find(tx, record.task);
    if (cap === undefined) return;
    const verdict = VERDICTS[decision.verdict];
    const text = decision.comment || (verdict === undefined ? "" : "decided");
    for (const review of await reviewsOf(tx, cap.capTaskId)) {
      await settleReview(tx, this.#cap, review, { text, attachments: [] });
    }
    if (isOwn || verdict === undefined) return;
    const { overseerId: senderId } = record.task;
    await this.#post(tx, MessageEffect.SAID, {
      case: "oversightDecision",
      value: {
        taskId: cap.capTaskId,
        senderId,
        recipientId: cap.agentId,
        decision: verdict,
        comment: decision.comment,
      },
    });
  }

  async inquired(tx: WriteTx, { task }: TaskRecord, inquiry: string): Promise<void> {
    const cap = await this.#find(tx, task);
    if (cap === undefined) return;
    const value = { taskId: cap.capTaskId, senderId: task.overseerId, recipientId: cap.agentId, inquiry };
    await this.#post(tx, MessageEffect.INQUIRED, { case: "oversightInquiry", value });
  }

  async escalating(tx: WriteTx, { task }: TaskRecord): Promise<void> {
    const cap = await this.#find(tx, task);
    if (cap === undefined) return;
    const text = `${task.overseerId} has not decided on the result of ${cap.agentId}; other principals may also decide`;
    await this.#tellError(tx, cap.capTaskId, ORCHESTRATOR, 408, text, [ORCHESTRATOR]);
  }

  async #find(tx: WriteTx, { id, externalId }: Task): Promise<CapTask | undefined> {
    return externalId === "" ? undefined : findCapTask(tx, id);
  }

  /** Delivers a task's notice to its agent again after the task has returned to the queue. */
  async #deliverAgain(tx: WriteTx, { agentId, noticeId }: CapTask): Promise<void> {
    await deliver(tx, agentId, noticeId);
    tx.afterCommit(() => this.#cap.bus.publish(INBOX_TOPIC, agentId));
  }

  /**
   * Suspends a task whose lease belongs to an inbox. The suspension takes effect at once, because an inbox has no
   * checkpoint to save.
   */
  async #suspend(tx: WriteTx, { taskId, capTaskId, agentId }: CapTask): Promise<void> {
    await this.#cap.engine.suspend(tx, taskId);
    await this.#tellError(
      tx,
      capTaskId,
      agentId,
      409,
      "the task is suspended; its notice arrives again after a resume",
      [agentId],
    );
  }

  /** Delivers a result that waits for approval to the overseer's inbox. */
  async #notifyOverseer(tx: WriteTx, cap: CapTask, { id, overseerId }: Task): Promise<void> {
    const heldResult = await this.#cap.engine.heldResult(tx, id);
    const message = await resultOf(tx, cap, heldResult?.output);
    await this.#postMessage(tx, MessageEffect.SUBMITTED, message, MessageOrigin.PLATFORM, [overseerId]);
  }

  async #release(tx: WriteTx, cap: CapTask, events: readonly TaskEvent[], wasHeld: boolean): Promise<void> {
    const last = events.at(-1)?.payload;
    const message = await resultOf(tx, cap, last?.case === "completed" ? last.value.output : undefined);
    const origin = wasHeld ? MessageOrigin.RELEASED : MessageOrigin.PLATFORM;
    await this.#postMessage(tx, MessageEffect.COMPLETED, message, origin, await waitersFor(tx, cap));
  }

  async #tellEnd(tx: WriteTx, cap: CapTask, task: Task): Promise<void> {
    const { capTaskId, agentId, delegatorId } = cap;
    const { errorCode, errorMessage } = failureIn(task);
    const text = `the task is ${statusName(task.status)}: ${errorMessage}`;
    if (task.status === TaskStatus.CANCELLED) {
      return this.#tellError(tx, capTaskId, agentId, errorCode, text, [agentId]);
    }
    const to = [...(await waitersFor(tx, cap)), agentId, ORCHESTRATOR];
    await this.#tellError(tx, capTaskId, delegatorId, errorCode, text, to);
  }

  #tellError(
    tx: WriteTx,
    taskId: string,
    recipientId: string,
    errorCode: number,
    errorMessage: string,
    to: readonly string[],
  ): Promise<void> {
    const effect = to.includes(ORCHESTRATOR) ? MessageEffect.ESCALATED : MessageEffect.SAID;
    const value = { taskId, senderId: PLATFORM, recipientId, errorCode, errorMessage };
    return this.#post(tx, effect, { case: "errorResponse", value }, to);
  }

  #post(
    tx: WriteTx,
    effect: MessageEffect,
    kind: NonNullable<Parameters<typeof create<typeof CapMessageSchema>>[1]>["kind"],
    to?: readonly string[],
  ): Promise<void> {
    const message = create(CapMessageSchema, { ...(kind && { kind }) });
    return this.#postMessage(tx, effect, message, MessageOrigin.PLATFORM, to);
  }

  async #postMessage(
    tx: WriteTx,
    effect: MessageEffect,
    message: CapMessage,
    origin: MessageOrigin,
    to?: readonly string[],
  ): Promise<void> {
    await post(tx, this.#cap, { message, effect, origin, ...(to && { to }) });
  }
}

/**
 * Returns a result as a CAP message: the worker's message, or a message that the platform builds from the output. The
 * worker's message counts only if the lineage contains all its tool results, because a new tool result is unverified.
 */
async function resultOf(
  tx: ReadTx,
  { capTaskId: taskId, rootId, agentId, delegatorId }: CapTask,
  output: TaskOutput | undefined,
): Promise<CapMessage> {
  const common = { taskId, senderId: agentId, recipientId: delegatorId };
  let statement = saidIn(output?.full);
  for (const result of toolResultsOf(statement ?? { attachments: [] })) {
    if (!(await hasToolResult(tx, rootId, sha256Hex(identityOf(result))))) statement = undefined;
  }
  const value =
    statement === undefined
      ? {
          ...common,
          content: output?.minimal ?? "",
          attachments: { values: [asObject(output?.full)] },
        }
      : { ...common, content: statement.content, attachments: { values: statement.attachments } };
  return create(CapMessageSchema, { kind: { case: "message", value } });
}
