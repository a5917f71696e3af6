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
  type TaskRecord,
} from "../../core/index.ts";
import type { CapContext } from "../handlers/context.ts";
import { identityOf, toolResultsOf } from "../rules/attachments.ts";
import { asObject, saidIn } from "../rules/content.ts";
import { failureIn } from "../rules/error-actions.ts";
import { baseOf, ORCHESTRATOR, PLATFORM } from "../rules/participant.ts";
import { deleteHeld, insertHeld } from "../store/held-rows.ts";
import { deliver, hasToolResult } from "../store/message-rows.ts";
import { type CapTask, findCapTask, reviewsOf, waitersFor } from "../store/task-rows.ts";
import { settleReview } from "./complete.ts";
import { INBOX_TOPIC, post } from "./post.ts";
import { holds } from "./worker.ts";

/** The events of which somebody may have to be told. */
const TOLD: ReadonlySet<TaskEvent["payload"]["case"]> = new Set([
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

const VERDICTS: Partial<Record<ReviewVerdict, Verdict>> = {
  [ReviewVerdict.APPROVED]: Verdict.APPROVED,
  [ReviewVerdict.CHANGES_REQUESTED]: Verdict.CHANGES_REQUESTED,
  [ReviewVerdict.REJECTED]: Verdict.REJECTED,
};

/**
 * Tells participants what became of their tasks by other ways than a message: a result that its overseer let pass, the end
 * of a task's time, a decision at the queue, a worker that speaks no CAP.
 */
export class Notices implements ReviewListener {
  readonly #cap: CapContext;

  constructor(cap: CapContext) {
    this.#cap = cap;
  }

  /** Follows the engine. */
  async observe(tx: WriteTx, change: TaskChange): Promise<void> {
    const { before, after, events } = change;
    const { task } = after;
    // Every CAP task has an external id: it is its dotted one.
    if (before === undefined || task.externalId === "") return;
    await this.#noteHeld(tx, before.task.status, task);
    if (!events.some(({ payload }) => TOLD.has(payload.case))) return;
    const cap = await findCapTask(tx, task.id);
    if (cap === undefined) return;
    if (task.status === TaskStatus.PENDING) return this.#deliverAgain(tx, cap);
    if (task.suspensionRequest !== undefined && holds(after, cap.agentId)) return this.#suspend(tx, cap);
    if (this.#cap.told.has(tx, task.id)) return;
    if (task.status === TaskStatus.IN_REVIEW) return this.#tellOverseer(tx, cap, task);
    if (task.status === TaskStatus.COMPLETED) {
      return this.#release(tx, cap, events, before.task.status === TaskStatus.IN_REVIEW);
    }
    if (isTerminal(task.status)) await this.#tellEnd(tx, cap, task);
  }

  /** Notes for how long a result waits for its overseer. */
  async #noteHeld(tx: WriteTx, before: TaskStatus, { id, status, overseerId }: Task): Promise<void> {
    const isHeld = status === TaskStatus.IN_REVIEW;
    if (isHeld === (before === TaskStatus.IN_REVIEW)) return;
    if (!isHeld) return deleteHeld(tx, id);
    const cap = await findCapTask(tx, id);
    if (cap === undefined) return;
    const { capTaskId, agentId } = cap;
    await insertHeld(tx, { taskId: id, capTaskId, holder: baseOf(agentId), overseer: baseOf(overseerId) });
  }

  /** Settles the reviews that were asked for by messages, and tells of a decision that came by another door. */
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
    const text = `${task.overseerId} has not decided on the result of ${cap.agentId}; others may by now`;
    await this.#tellError(tx, cap.capTaskId, ORCHESTRATOR, 408, text, [ORCHESTRATOR]);
  }

  async #find(tx: WriteTx, { id, externalId }: Task): Promise<CapTask | undefined> {
    return externalId === "" ? undefined : findCapTask(tx, id);
  }

  /** A task that waits again is in its agent's inbox again. */
  async #deliverAgain(tx: WriteTx, { agentId, noticeId }: CapTask): Promise<void> {
    await deliver(tx, agentId, noticeId);
    tx.afterCommit(() => this.#cap.bus.publish(INBOX_TOPIC, agentId));
  }

  /** An inbox lets go of its task as soon as that is asked of it, and says so: there is nothing to save. */
  async #suspend(tx: WriteTx, { taskId, capTaskId, agentId }: CapTask): Promise<void> {
    await this.#cap.engine.suspend(tx, taskId);
    await this.#tellError(
      tx,
      capTaskId,
      agentId,
      409,
      "the task is suspended; it comes again when it goes on",
      [agentId],
    );
  }

  /** A result that a worker handed in is in the overseer's inbox. */
  async #tellOverseer(tx: WriteTx, cap: CapTask, { id, overseerId }: Task): Promise<void> {
    const held = await this.#cap.engine.heldResult(tx, id);
    const message = await resultOf(tx, cap, held?.output);
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
 * A result as its author would say it to who waits for it: in its own words, or as what a worker gave. What a worker gave as
 * results of tools nobody checked, so those count only where they were seen before.
 */
async function resultOf(
  tx: ReadTx,
  { capTaskId: taskId, rootId, agentId, delegatorId }: CapTask,
  output: TaskOutput | undefined,
): Promise<CapMessage> {
  const common = { taskId, senderId: agentId, recipientId: delegatorId };
  let said = saidIn(output?.full);
  for (const result of toolResultsOf(said ?? { attachments: [] })) {
    if (!(await hasToolResult(tx, rootId, sha256Hex(identityOf(result))))) said = undefined;
  }
  const value =
    said === undefined
      ? {
          ...common,
          content: output?.minimal ?? "",
          attachments: { values: [asObject(output?.full)] },
        }
      : { ...common, content: said.content, attachments: { values: said.attachments } };
  return create(CapMessageSchema, { kind: { case: "message", value } });
}
