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
import { contentValue } from "../rules/content.ts";
import { ATTACHMENTS, wordsOf } from "../rules/message.ts";
import { type Intent, notAllowed, ruleNotMet } from "../rules/permit.ts";
import { depthOf, parentIdOf, rootIdOf } from "../rules/task-id.ts";
import { insertParty } from "../store/lineage-rows.ts";
import type { StoredMessage } from "../store/message-rows.ts";
import { insertCapTask, readCapTask, readKnown, replaceCapTask } from "../store/task-rows.ts";
import { handIn } from "./complete.ts";
import type { CapContext } from "./context.ts";
import { participantNotFound } from "./participants.ts";
import { post } from "./post.ts";
import type { Sending } from "./sending.ts";
import { SILENCE_MS } from "./worker.ts";

/** Maximum number of attempts of a task that a message delegated. */
const MAX_ATTEMPTS = 3;

/** Facts for a delegation that other services supply before the transaction. */
export interface PreparedDelegation {
  readonly draft: TaskDraft;
  readonly admitted: Admitted;
  /** The principal that becomes the task's delegator. */
  readonly delegator: string;
}

/**
 * Checks whether the delegator's manifest allows the delegation, and reads the task engine's facts about the delegate.
 * The notice's summary is the justification that the manifest's rule requires. (CAP "Delegation")
 *
 * @param delegator the principal that becomes the task's delegator
 * @throws DeputeError MESSAGE_NOT_ALLOWED, MESSAGE_RULE_NOT_MET, AGENT_NOT_FOUND, CALLER_NOT_ALLOWED,
 * DEPENDENCY_UNAVAILABLE
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

/** Maximum length of a justification that the registry accepts, in characters. */
const MAX_JUSTIFICATION = 4000;

/**
 * Policy decisions about the parties of a delegation. After one of these decisions, the error is MESSAGE_NOT_ALLOWED.
 * For an unknown delegate, it is AGENT_NOT_FOUND; after any other refusal, MESSAGE_RULE_NOT_MET.
 */
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
  const why = `the manifest of ${senderId} does not allow this delegation to ${recipientId}: ${word}`;
  throw PERSONS.has(decision) ? notAllowed(word, why) : ruleNotMet(word, why);
}

/** Returns the types of a notice's attachments, by the names that policy predicates use. */
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
    // A child task also ends at its parent's deadline; the task engine enforces this.
    limits: { heartbeat: durationFromMs(SILENCE_MS), total: durationFromMs(totalMs) },
  });
}

/**
 * Creates the task of a notice below the parent task, and delivers the notice. A notice to the sender's own overseer
 * also submits the parent task's result: the new task is its review. A retry of an unsuccessful task creates a new task
 * under the same CAP id.
 */
export async function delegate(
  tx: WriteTx,
  cap: CapContext,
  { message, kind, sender, identity }: Sending,
  intent: Extract<Intent, { does: "delegate" }>,
  prepared: PreparedDelegation,
): Promise<StoredMessage> {
  const { notice, submits, reviewsId, again } = intent;
  const { taskId: capTaskId, recipientId: agentId } = notice;
  const before = again && (await readCapTask(tx, capTaskId));
  const { organization } = identity;
  const stored = await post(tx, cap, { message, effect: effectOf(intent), organization });
  const taskId = await createPart(tx, cap, prepared, stored, before?.taskId);
  const link = { capTaskId, taskId, delegatorId: sender.id, agentId, reviewsId, noticeId: stored.messageId };
  if (before !== undefined) await replaceCapTask(tx, link);
  else await insertCapTask(tx, { ...link, rootId: rootIdOf(capTaskId), createMs: stored.receiveMs });
  if (submits) await handIn(tx, cap, parentIdOf(capTaskId), sender.id, wordsOf(kind));
  return stored;
}

function effectOf({ notice, submits, again }: Extract<Intent, { does: "delegate" }>): MessageEffect {
  if (submits) return MessageEffect.SUBMITTED;
  if (again === undefined) return MessageEffect.DELEGATED;
  return again.agentId === notice.recipientId ? MessageEffect.RETRIED : MessageEffect.REASSIGNED;
}

/**
 * A viewer that may act for every principal. With this viewer, the task engine accepts the new task below any parent
 * task. CAP's rules have checked the parent's delegate by its agent id, because the delegate's key may have changed.
 */
const HOLDER: Viewer = { mayActFor: () => true };

/**
 * Creates a task in the task engine, below the parent that CAP's id implies.
 *
 * @param notice the stored notice; the organization of its lineage owns a task without a parent
 * @param replaces the task whose external id the new task takes over
 * @returns the task engine's id of the new task
 */
export async function createPart(
  tx: WriteTx,
  cap: CapContext,
  { draft, admitted, delegator }: PreparedDelegation,
  { organization }: StoredMessage,
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
    organization,
    requestId: `cap/${newId(cap.clock.now())}`,
    viewer: HOLDER,
    isExclusive: true,
    ...(replaces !== undefined && { replaces }),
  });
  const { overseerId } = admitted.admission;
  if (overseerId !== "") await insertParty(tx, rootIdOf(capTaskId), overseerId);
  return taskId;
}
