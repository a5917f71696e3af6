import { Verdict } from "@depute/contracts/cap/v1/message_pb";
import { MessageEffect } from "@depute/contracts/depute/tasks/v1/message_service_pb";
import { ReviewVerdict } from "@depute/contracts/depute/verifier/v1/review_service_pb";
import { newId } from "@depute/core";
import { LOCAL_PRINCIPAL, ownOptions } from "@depute/service";
import type { WriteTx } from "@depute/store";
import { type Decision, taskNotFound } from "../../core/index.ts";
import { wordsOf } from "../rules/message.ts";
import { ORCHESTRATOR } from "../rules/participant.ts";
import type { Intent, TaskFacts } from "../rules/permit.ts";
import type { StoredMessage } from "../store/message-rows.ts";
import { readKnown } from "../store/task-rows.ts";
import type { CapContext } from "./context.ts";
import { post } from "./post.ts";
import type { Sending } from "./sending.ts";

type Deciding = Extract<Intent, { does: "decide" }>;

const VERDICTS: Partial<Record<Verdict, ReviewVerdict>> = {
  [Verdict.APPROVED]: ReviewVerdict.APPROVED,
  [Verdict.CHANGES_REQUESTED]: ReviewVerdict.CHANGES_REQUESTED,
  [Verdict.REJECTED]: ReviewVerdict.REJECTED,
};

const EFFECTS: Partial<Record<Verdict, MessageEffect>> = {
  [Verdict.APPROVED]: MessageEffect.APPROVED,
  [Verdict.CHANGES_REQUESTED]: MessageEffect.CHANGES_REQUESTED,
  [Verdict.REJECTED]: MessageEffect.REJECTED,
};

function decisionOf({ verdict, comment }: Deciding): Decision {
  return { verdict: VERDICTS[verdict] ?? ReviewVerdict.UNSPECIFIED, comment };
}

/**
 * Records a decision in the review queue, then calls `send` to send the message. So queue and messages never contain
 * different decisions.
 */
export async function decideFirst<T>(
  cap: CapContext,
  { sender, identity, context }: Sending,
  intent: Deciding,
  send: () => Promise<T>,
): Promise<T> {
  const { taskId, overseer } = await reviewedTask(cap, intent.reviewed);
  // The orchestrator decides under its own key. An overseer decides under the key in the task's record, even if the
  // overseer's key has changed.
  const reviewer = sender.id === ORCHESTRATOR && !identity.local ? sender.principal : overseer;
  const options = ownOptions(context, cap.clock);
  return cap.engine.reviews.decide(taskId, decisionOf(intent), reviewer, options, send);
}

/** Records a question in the review queue, then calls `send` with the question's number to send the message. */
export async function inquireFirst<T>(
  cap: CapContext,
  { kind, context }: Sending,
  { reviewed }: Extract<Intent, { does: "inquire" }>,
  send: (inquiry: number) => Promise<T>,
): Promise<T> {
  const { taskId, overseer } = await reviewedTask(cap, reviewed);
  const question = { requestId: newId(cap.clock.now()), text: wordsOf(kind).text, reviewer: overseer };
  return cap.engine.reviews.inquire(taskId, question, ownOptions(context, cap.clock), send);
}

async function reviewedTask({ engine }: CapContext, { taskId: capTaskId }: TaskFacts) {
  const reviewed = await engine.store.read((tx) => readKnown(tx, engine, capTaskId));
  if (reviewed === undefined) throw taskNotFound(capTaskId);
  return { taskId: reviewed.cap.taskId, overseer: reviewed.record.overseerPrincipal || LOCAL_PRINCIPAL };
}

/**
 * Stores the number of an overseer's question. The result's author then does not receive the question from the queue
 * again.
 */
export async function noteInquiry(
  tx: WriteTx,
  { engine }: CapContext,
  { taskId: capTaskId }: TaskFacts,
  number: number,
): Promise<void> {
  const reviewed = await readKnown(tx, engine, capTaskId);
  if (reviewed !== undefined) await engine.reviews.noteInquiry(tx, reviewed.cap.taskId, number);
}

/**
 * Records an answer to the overseer's questions. During a review, every message from the result's author to the
 * overseer counts as an answer.
 */
export async function noteAnswer(
  tx: WriteTx,
  { engine }: CapContext,
  { kind, sender }: Sending,
  { taskId: capTaskId }: TaskFacts,
): Promise<void> {
  const reviewed = await readKnown(tx, engine, capTaskId);
  if (reviewed === undefined) return;
  await engine.reviews.noteAnswer(
    tx,
    reviewed.cap.taskId,
    wordsOf(kind).text,
    sender.principal.slice(0, MAX_PRINCIPAL),
  );
}

/** Maximum length of a principal that the review queue stores, in characters. */
const MAX_PRINCIPAL = 128;

/** Delivers a decision, and applies it to the task with the held result. */
export async function decide(
  tx: WriteTx,
  cap: CapContext,
  { message, kind }: Sending,
  intent: Deciding,
): Promise<StoredMessage> {
  const { engine } = cap;
  const { taskId: capTaskId, agentId } = intent.reviewed;
  const reviewed = await readKnown(tx, engine, capTaskId);
  if (reviewed === undefined) throw taskNotFound(capTaskId);
  const isPlain = kind.case === "message";
  const stored = await post(tx, cap, {
    message,
    effect: EFFECTS[intent.verdict] ?? MessageEffect.SAID,
    // An oversight_decision also goes to the author of the result. A plain message goes only to its recipient.
    to: isPlain ? [kind.value.recipientId] : [kind.value.recipientId, agentId],
  });
  await engine.decide(tx, reviewed.cap.taskId, decisionOf(intent), true);
  return stored;
}
