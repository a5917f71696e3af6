import { Verdict } from "@depute/contracts/cap/v1/message_pb";
import { MessageEffect } from "@depute/contracts/depute/tasks/v1/message_service_pb";
import { ReviewVerdict } from "@depute/contracts/depute/verifier/v1/review_service_pb";
import { newId } from "@depute/core";
import { LOCAL_PRINCIPAL, ownOptions } from "@depute/service";
import type { WriteTx } from "@depute/store";
import { type Decision, taskNotFound } from "../../core/index.ts";
import type { CapContext } from "../handlers/context.ts";
import type { Sending } from "../handlers/send.ts";
import { wordsOf } from "../rules/message.ts";
import { ORCHESTRATOR } from "../rules/participant.ts";
import type { Intent, TaskFacts } from "../rules/permit.ts";
import type { StoredMessage } from "../store/message-rows.ts";
import { readKnown } from "../store/task-rows.ts";
import { post } from "./post.ts";

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

/** Has the queue of reviews decide first, and then the message sent: by any other door it would be the same decision. */
export async function decideFirst<T>(
  cap: CapContext,
  { sender, identity, context }: Sending,
  intent: Deciding,
  send: () => Promise<T>,
): Promise<T> {
  const { taskId, overseer } = await reviewedTask(cap, intent.reviewed);
  // The overseer was found to be the caller's by its id; its key may have been replaced since the task was created.
  const reviewer = sender.id === ORCHESTRATOR && !identity.local ? sender.principal : overseer;
  const options = ownOptions(context, cap.clock);
  return cap.engine.reviews.decide(taskId, decisionOf(intent), reviewer, options, send);
}

/** Puts a question to the queue of reviews first, and then the message sent. */
export async function inquireFirst<T>(
  cap: CapContext,
  { kind, context }: Sending,
  { reviewed }: Extract<Intent, { does: "inquire" }>,
  send: (inquiry: number) => Promise<T>,
): Promise<T> {
  const { taskId, overseer } = await reviewedTask(cap, reviewed);
  const question = { requestId: newId(), text: wordsOf(kind).text, reviewer: overseer };
  return cap.engine.reviews.inquire(taskId, question, ownOptions(context, cap.clock), send);
}

async function reviewedTask({ engine }: CapContext, { taskId: capTaskId }: TaskFacts) {
  const reviewed = await engine.store.read((tx) => readKnown(tx, engine, capTaskId));
  if (reviewed === undefined) throw taskNotFound(capTaskId);
  return { taskId: reviewed.cap.taskId, overseer: reviewed.record.overseerPrincipal || LOCAL_PRINCIPAL };
}

/** Keeps the number of a question, so that it is not put to the author again. */
export async function noteInquiry(
  tx: WriteTx,
  { engine }: CapContext,
  { taskId: capTaskId }: TaskFacts,
  number: number,
): Promise<void> {
  const reviewed = await readKnown(tx, engine, capTaskId);
  if (reviewed !== undefined) await engine.reviews.noteInquiry(tx, reviewed.cap.taskId, number);
}

/** What the author says to its overseer while its result is reviewed answers what was asked. */
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

/** Characters of a principal that the queue keeps. */
const MAX_PRINCIPAL = 128;

/** Delivers a decision, and applies it to the task whose result was held. */
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
    // Whose result it is learns of it, whomever the decision is addressed to.
    to: isPlain ? [kind.value.recipientId] : [kind.value.recipientId, agentId],
  });
  await engine.decide(tx, reviewed.cap.taskId, decisionOf(intent), true);
  return stored;
}
