import { create } from "@bufbuild/protobuf";
import { durationFromMs } from "@bufbuild/protobuf/wkt";
import type { HandlerContext } from "@connectrpc/connect";
import type { DelegationNotice } from "@depute/contracts/cap/v1/message_pb";
import { PolicyDecision, PolicyDecisionSchema } from "@depute/contracts/depute/registry/v1/policy_service_pb";
import { MessageEffect } from "@depute/contracts/depute/tasks/v1/message_service_pb";
import { type TaskDraft, TaskDraftSchema } from "@depute/contracts/depute/tasks/v1/task_service_pb";
import { newId } from "@depute/core";
import { ownOptions } from "@depute/service";
import type { WriteTx } from "@depute/store";
import { type Admitted, type Viewer, workOf } from "../../core/index.ts";
import type { CapContext } from "../handlers/context.ts";
import { participantNotFound } from "../handlers/participants.ts";
import type { Sending } from "../handlers/send.ts";
import { contentValue } from "../rules/content.ts";
import { ATTACHMENTS, wordsOf } from "../rules/message.ts";
import { type Intent, notAllowed, ruleNotMet } from "../rules/permit.ts";
import { depthOf, parentIdOf, rootIdOf } from "../rules/task-id.ts";
import { insertParty, type StoredMessage } from "../store/message-rows.ts";
import { insertCapTask, readCapTask, readKnown, replaceCapTask } from "../store/task-rows.ts";
import { handIn } from "./complete.ts";
import { post } from "./post.ts";
import { SILENCE_MS } from "./worker.ts";

/** Attempts of a task that was delegated by a message. */
const MAX_ATTEMPTS = 3;

/** What is found out about a delegation before its transaction. */
export interface PreparedDelegation {
  readonly draft: TaskDraft;
  readonly admitted: Admitted;
  /** The principal whose task it is. */
  readonly delegator: string;
}

/**
 * Asks whether the delegator's manifest allows the delegation, and what the engine has to know of the delegate. The summary
 * is the justification that the rule asks for. (CAP "Delegation")
 *
 * @param delegator the principal of the notice's sender
 * @throws DeputeError MESSAGE_NOT_ALLOWED, MESSAGE_RULE_NOT_MET, AGENT_NOT_FOUND, DEPENDENCY_UNAVAILABLE
 */
export async function prepareDelegation(
  { engine, policy, clock, settings }: CapContext,
  notice: DelegationNotice,
  delegator: string,
  context: HandlerContext,
): Promise<PreparedDelegation> {
  const options = ownOptions(context, clock);
  const { senderId, recipientId, contextSummary } = notice;
  const justification = Array.from(contextSummary).slice(0, MAX_JUSTIFICATION).join("");
  const draft = draftOf(notice, settings.taskTimeoutMs);
  const work = { depth: depthOf(notice.taskId), attachmentTypes: typesOf(notice) };
  const { decision } = await policy.checkDelegation(
    { fromAgentId: senderId, toAgentId: recipientId, justification, task: workOf(draft, "", work) },
    options,
  );
  requirePolicy(decision, notice);
  const admitted = await engine.admit({ draft, delegator, work }, options);
  return { draft, admitted, delegator };
}

/** Characters that the registry takes as a reason. */
const MAX_JUSTIFICATION = 4000;

/** Decisions about who may; the others are about the condition. */
const PERSONS: ReadonlySet<PolicyDecision> = new Set([
  PolicyDecision.ROLE,
  PolicyDecision.NO_MANIFEST,
  PolicyDecision.NOT_ALLOWED,
]);

function requirePolicy(decision: PolicyDecision, { senderId, recipientId }: DelegationNotice): void {
  if (decision === PolicyDecision.ALLOWED) return;
  if (decision === PolicyDecision.UNKNOWN_AGENT) throw participantNotFound(recipientId);
  const name = PolicyDecisionSchema.value[decision]?.name ?? "";
  const word = name.replace("POLICY_DECISION_", "").toLowerCase();
  const why = `the manifest of ${senderId} does not let it delegate this to ${recipientId}: ${word}`;
  throw PERSONS.has(decision) ? notAllowed(word, why) : ruleNotMet(word, why);
}

/** The types of a notice's attachments, as predicates of rules know them. */
function typesOf({ attachments }: DelegationNotice): string[] {
  const types = (attachments?.values ?? []).map(({ kind }) =>
    kind.case === undefined ? "" : ATTACHMENTS[kind.case],
  );
  return [...new Set(types)].filter((type) => type !== "");
}

function draftOf(
  { taskId, recipientId, contextSummary, attachments }: DelegationNotice,
  totalMs: number,
): TaskDraft {
  return create(TaskDraftSchema, {
    externalId: taskId,
    agentId: recipientId,
    description: contextSummary,
    input: contentValue(contextSummary, attachments?.values ?? []),
    retry: { maxAttempts: MAX_ATTEMPTS },
    // A part has no more time than what it is a part of: the engine sees to that.
    limits: { heartbeat: durationFromMs(SILENCE_MS), total: durationFromMs(totalMs) },
  });
}

/**
 * Creates the task of a notice below the parent, and delivers the notice with it. One that goes to the sender's own
 * overseer hands in the result: the parent is under review, and this is its review. A notice that tries an unsuccessful
 * task again creates another one, which takes over the id.
 */
export async function delegate(
  tx: WriteTx,
  cap: CapContext,
  { message, kind, sender }: Sending,
  intent: Extract<Intent, { does: "delegate" }>,
  prepared: PreparedDelegation,
): Promise<StoredMessage> {
  const { notice, submits, reviewsId, again } = intent;
  const { taskId: capTaskId, recipientId: agentId } = notice;
  const before = again && (await readCapTask(tx, capTaskId));
  const stored = await post(tx, cap, { message, effect: effectOf(intent) });
  const taskId = await createPart(tx, cap, prepared, before?.taskId);
  const made = { capTaskId, taskId, delegatorId: sender.id, agentId, reviewsId, noticeId: stored.messageId };
  if (before !== undefined) await replaceCapTask(tx, made);
  else await insertCapTask(tx, { ...made, rootId: rootIdOf(capTaskId), createMs: stored.receiveMs });
  if (submits) await handIn(tx, cap, parentIdOf(capTaskId), sender.id, wordsOf(kind));
  return stored;
}

function effectOf({ notice, submits, again }: Extract<Intent, { does: "delegate" }>): MessageEffect {
  if (submits) return MessageEffect.SUBMITTED;
  if (again === undefined) return MessageEffect.DELEGATED;
  return again.agentId === notice.recipientId ? MessageEffect.RETRIED : MessageEffect.REASSIGNED;
}

/** CAP's rules have found that who hands over holds the parent, by its id: its key may have been replaced since. */
const HOLDER: Viewer = { mayActFor: () => true };

/**
 * Makes a task in the engine, under the one that CAP's id names as its parent.
 *
 * @param replaces the task of the engine whose external id the new task takes
 * @returns the engine's id
 */
export async function createPart(
  tx: WriteTx,
  cap: CapContext,
  { draft, admitted, delegator }: PreparedDelegation,
  replaces?: string,
): Promise<string> {
  const { engine } = cap;
  const capTaskId = draft.externalId;
  const parent = await readKnown(tx, engine, parentIdOf(capTaskId));
  const placed = create(TaskDraftSchema, { ...draft, parentTaskId: parent?.cap.taskId ?? "" });
  const { taskId } = await engine.create(tx, {
    draft: placed,
    admitted,
    delegator,
    requestId: `cap/${newId()}`,
    viewer: HOLDER,
    isExclusive: true,
    ...(replaces !== undefined && { replaces }),
  });
  const { overseerId } = admitted.admission;
  if (overseerId !== "") await insertParty(tx, rootIdOf(capTaskId), overseerId);
  return taskId;
}
