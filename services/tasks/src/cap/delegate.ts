import { create, fromJson } from "@bufbuild/protobuf";
import { durationFromMs, ValueSchema } from "@bufbuild/protobuf/wkt";
import { type Attachment, AttachmentSchema } from "@depute/contracts/cap/v1/attachment_pb";
import type { DelegationNotice } from "@depute/contracts/cap/v1/message_pb";
import { PolicyDecision, PolicyDecisionSchema } from "@depute/contracts/depute/registry/v1/policy_service_pb";
import { MessageEffect } from "@depute/contracts/depute/tasks/v1/message_service_pb";
import {
  IdConflictPolicy,
  IdReusePolicy,
  type TaskDraft,
  TaskDraftSchema,
} from "@depute/contracts/depute/tasks/v1/task_service_pb";
import { DeputeError, ErrorReason, newId } from "@depute/core";
import { ownOptions } from "@depute/service";
import type { WriteTx } from "@depute/store";
import { encode } from "@depute/wire";
import { admit, resolveTarget } from "../admission.ts";
import { type Admitted, createTaskWithin } from "../create-task.ts";
import { draftDigest } from "../digest.ts";
import { asCaller } from "../handlers/context.ts";
import { readTask } from "../store/task-rows.ts";
import type { CapContext } from "./context.ts";
import { participantNotFound } from "./participants.ts";
import { post } from "./post.ts";
import { insertParty, type StoredMessage } from "./rows.ts";
import { type Intent, notAllowed, ruleNotMet } from "./rules/permit.ts";
import { parentIdOf, rootIdOf } from "./rules/task-id.ts";
import type { Sending } from "./send.ts";
import { insertCapTask, readKnown } from "./task-rows.ts";

/** Attempts of a task that was delegated by a message. */
const MAX_ATTEMPTS = 3;

/** How long an agent that works by messages may be silent: it writes when it has something to say. Milliseconds. */
const SILENCE_MS = 3_600_000;

/** What is found out about a delegation before its transaction. */
export interface PreparedDelegation {
  readonly draft: TaskDraft;
  readonly admitted: Admitted;
  /** The principal that the task is the work of. */
  readonly delegator: string;
}

/**
 * Asks whether the sender's manifest allows the delegation, and what the engine has to know of the delegate. The summary is
 * the justification that the rule asks for. (CAP "Delegation")
 *
 * @throws DeputeError MESSAGE_NOT_ALLOWED, MESSAGE_RULE_NOT_MET, AGENT_NOT_FOUND, DEPENDENCY_UNAVAILABLE
 */
export async function prepareDelegation(
  { tasks, settings }: CapContext,
  { sender, context }: Pick<Sending, "sender" | "context">,
  notice: DelegationNotice,
): Promise<PreparedDelegation> {
  const { dependencies, clock } = tasks;
  const options = ownOptions(context, clock);
  const { senderId, recipientId, contextSummary } = notice;
  const { decision } = await dependencies.policy.checkDelegation(
    {
      fromAgentId: senderId,
      toAgentId: recipientId,
      justification: contextSummary.slice(0, MAX_JUSTIFICATION),
    },
    options,
  );
  requirePolicy(decision, notice);
  const draft = draftOf(notice, settings.taskTimeoutMs);
  const delegator = sender.principal;
  const target = await resolveTarget(dependencies, draft, delegator, options);
  const admitted = await admit(dependencies, draft, target, delegator, clock.now(), options);
  return { draft, admitted, delegator };
}

/** Characters that the registry takes as a reason. */
const MAX_JUSTIFICATION = 4000;

/** Decisions about the condition, not about who may. */
const CONDITIONS: ReadonlySet<PolicyDecision> = new Set([
  PolicyDecision.NO_RULE,
  PolicyDecision.NO_JUSTIFICATION,
]);

function requirePolicy(decision: PolicyDecision, { senderId, recipientId }: DelegationNotice): void {
  if (decision === PolicyDecision.ALLOWED) return;
  if (decision === PolicyDecision.UNKNOWN_AGENT) throw participantNotFound(recipientId);
  const name = PolicyDecisionSchema.value[decision]?.name ?? "";
  const word = name.replace("POLICY_DECISION_", "").toLowerCase();
  const why = `the manifest of ${senderId} does not let it delegate this to ${recipientId}: ${word}`;
  throw CONDITIONS.has(decision) ? ruleNotMet(word, why) : notAllowed(word, why);
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

/** Words and attachments as the engine keeps inputs and outputs. */
export function contentValue(content: string, attachments: readonly Attachment[]) {
  return fromJson(ValueSchema, {
    content,
    attachments: attachments.map((attachment) => encode(AttachmentSchema, attachment)),
  });
}

/** Makes the task of a notice, a part of the one that the sender holds, and delivers the notice with it. */
export async function delegate(
  tx: WriteTx,
  cap: CapContext,
  { message, identity, sender }: Sending,
  { notice }: Extract<Intent, { does: "delegate" }>,
  { draft, admitted, delegator }: PreparedDelegation,
): Promise<StoredMessage> {
  const { engine, treeLimits, contextMemory } = cap.tasks;
  const { taskId: capTaskId, recipientId } = notice;
  const nowMs = engine.clock.now();
  const parent = await readKnown(tx, parentIdOf(capTaskId));
  if ((await readKnown(tx, capTaskId)) !== undefined) throw taken(capTaskId);
  const placed = create(TaskDraftSchema, {
    ...draft,
    parentTaskId: parent?.cap.taskId ?? "",
  });
  const stored = await post(tx, engine, { message, effect: MessageEffect.DELEGATED });
  const request = {
    delegator,
    requestId: `cap/${newId()}`,
    draft: placed,
    digest: draftDigest(placed),
    policies: { reusePolicy: IdReusePolicy.REJECT, conflictPolicy: IdConflictPolicy.REJECT },
  };
  const created = await createTaskWithin(tx, engine, request, admitted, {
    caller: asCaller(identity),
    treeLimits,
    contextMemory,
  });
  const record = await readTask(tx, created.taskId);
  const rootId = rootIdOf(capTaskId);
  await insertCapTask(tx, {
    capTaskId,
    rootId,
    taskId: created.taskId,
    delegatorId: sender.id,
    agentId: recipientId,
    reviewsId: "",
    noticeId: stored.messageId,
    createMs: nowMs,
  });
  const overseerId = record?.task.overseerId ?? "";
  if (overseerId !== "") await insertParty(tx, rootId, overseerId);
  return stored;
}

function taken(capTaskId: string): DeputeError {
  return new DeputeError(ErrorReason.TASK_ID_TAKEN, "there is a task with this id", {
    metadata: { external_id: capTaskId },
  });
}
