import type {
  CapMessage,
  DelegationNotice,
  ErrorResponse,
  Verdict,
} from "@depute/contracts/cap/v1/message_pb";
import { Verdict as Verdicts } from "@depute/contracts/cap/v1/message_pb";
import { TaskStatus } from "@depute/contracts/depute/tasks/v1/task_pb";
import { DeputeError, ErrorReason, invalid } from "@depute/core";
import { isTerminal, statusName, taskNotFound } from "../../core/rules/index.ts";
import type { Failure } from "./error-actions.ts";
import { type Kind, kindOf } from "./message.ts";
import { baseOf, isRole, ORCHESTRATOR, USER } from "./participant.ts";
import { MAX_TASK_ID, parentIdOf } from "./task-id.ts";

/**
 * The facts about a task that the rules use. Task ids are CAP's dotted ids, and agent ids are the ids of participants.
 */
export interface TaskFacts {
  readonly taskId: string;
  readonly delegatorId: string;
  /** The id of the task's delegate. */
  readonly agentId: string;
  /** The overseer that must approve the task's result; empty for none. */
  readonly overseerId: string;
  readonly status: TaskStatus;
  /** The task that this task reviews; empty if this task is not a review. */
  readonly reviewsId: string;
}

/** The facts about a message that the rules use. */
export interface Facts {
  /** The task that the message names; undefined if that task does not exist. */
  readonly task: TaskFacts | undefined;
  /** Whether the task that the message names has open child tasks. */
  readonly hasOpenParts: boolean;
  /** The parent of the new task, for a delegation_notice. */
  readonly parent: TaskFacts | undefined;
  /** The holders of the tasks above the new task, the parent's holder first. */
  readonly holdersAbove: readonly string[];
  /**
   * The task to whose result an overseer's message refers. The message names that task or the task of its
   * review.
   */
  readonly subject: TaskFacts | undefined;
  /** Whether the review has lasted so long that the orchestrator may also decide it. */
  readonly isEscalated: boolean;
  /** Whether the lineage of the task's root exists. */
  readonly hasLineage: boolean;
  /**
   * Whether the sender is a role or a participant of the lineage. A participant has sent or received a message inside
   * the lineage.
   */
  readonly isKnown: boolean;
  /** Whether a plain message from an overseer to the delegator counts as approval. */
  readonly plainApproval: boolean;
  /** The CAP id of the task whose held result a plain message contains; empty for none. */
  readonly carries: string;
  /** Whether the settings refuse messages that contain held results. */
  readonly refusesHeld: boolean;
}

/** The effect of a message. */
export type Intent =
  /**
   * A plain message. `answers` is the reviewed task, if the message answers the overseer during the review of the
   * sender's result. `fromOutside` is true if the sender does not take part in the lineage.
   */
  | {
      readonly does: "say";
      readonly answers?: TaskFacts;
      readonly fromOutside?: true;
      /** The task whose held result the message contains; absent for none. */
      readonly carries?: string;
    }
  /** A delegation. A notice to the sender's own overseer also submits the result of the parent task. */
  | {
      readonly does: "delegate";
      readonly notice: DelegationNotice;
      readonly submits: boolean;
      /** The task that the new task reviews; empty if the new task is not a review. */
      readonly reviewsId: string;
      /** The task that ended without a result, and whose CAP id the new task takes over; absent for a new id. */
      readonly again?: TaskFacts;
    }
  | { readonly does: "complete"; readonly task: TaskFacts; readonly carries?: string }
  | { readonly does: "report"; readonly task: TaskFacts; readonly error: ErrorResponse }
  | { readonly does: "inquire"; readonly reviewed: TaskFacts }
  | {
      readonly does: "decide";
      readonly reviewed: TaskFacts;
      readonly verdict: Verdict;
      readonly comment: string;
    };

/**
 * Returns the effect of a message by the rules of CAP and, where CAP has none, by Depute's choices.
 *
 * @throws DeputeError TASK_NOT_FOUND, TASK_ID_TAKEN, MESSAGE_NOT_ALLOWED, MESSAGE_RULE_NOT_MET, TASK_STATE_CONFLICT,
 * TASK_CYCLE, INVALID_REQUEST
 */
export function permit(message: CapMessage, facts: Facts): Intent {
  const intent = intentOf(message, facts);
  const { carries, refusesHeld } = facts;
  const isPlain = intent.does === "say" || (intent.does === "complete" && intent.task.overseerId === "");
  if (carries === "" || !isPlain) return intent;
  if (!refusesHeld) return { ...intent, carries };
  throw new DeputeError(
    ErrorReason.MESSAGE_NOT_ALLOWED,
    "the message contains a result that waits for its overseer; send the message to the overseer, or wait for the decision",
    { metadata: { rule: "held_result", task: carries } },
  );
}

function intentOf(message: CapMessage, facts: Facts): Intent {
  const kind = kindOf(message);
  const { taskId, senderId, recipientId } = kind.value;
  if (senderId === recipientId) throw notAllowed("self", "the recipient must not be the sender");
  const begins = !facts.hasLineage && isTalk(kind) && parentIdOf(taskId) === "";
  if (!facts.isKnown && !begins) return fromOutside(kind);
  requireTask(taskId, facts);
  switch (kind.case) {
    case "message":
      return talk(kind.value, facts);
    case "delegationNotice":
      return delegation(kind.value, facts);
    case "errorResponse": {
      const { task } = facts;
      const isHolders = task !== undefined && isOpen(task) && task.agentId === senderId;
      if (!isHolders || ![task.delegatorId, ORCHESTRATOR].includes(recipientId)) return { does: "say" };
      return { does: "report", task, error: kind.value };
    }
    case "oversightInquiry": {
      const reviewed = requireReview(taskId, senderId, facts, false);
      if (recipientId === reviewed.agentId) return { does: "inquire", reviewed };
      throw notAllowed("recipient", `the recipient must be ${reviewed.agentId}, the author of the result`);
    }
    case "oversightDecision": {
      const reviewed = requireReview(taskId, senderId, facts, true);
      if (![reviewed.agentId, reviewed.delegatorId].includes(recipientId)) {
        throw notAllowed("recipient", "the recipient must be the author of the result, or its delegator");
      }
      const { decision: verdict, comment = "" } = kind.value;
      if (verdict !== Verdicts.APPROVED && comment.trim() === "") {
        throw invalid("message.comment", "is required unless the decision is approved");
      }
      return { does: "decide", reviewed, verdict, comment };
    }
  }
}

/**
 * Whether a message of this kind may be plain talk, which any participant may send to any other participant. (CAP
 * "Messaging")
 */
export function isTalk(kind: Kind): kind is Extract<Kind, { case: "message" | "errorResponse" }> {
  return kind.case === "message" || kind.case === "errorResponse";
}

/**
 * Returns the effect of a message from a sender outside the lineage. Such a sender may send plain messages to any
 * participant. The response is the same whether the task exists or not, so it does not disclose the task.
 */
function fromOutside(kind: Kind): Intent {
  const { taskId } = kind.value;
  const isRoot = parentIdOf(taskId) === "";
  if (isRoot && kind.case === "delegationNotice") throw notOrchestrator();
  if (!isTalk(kind)) throw taskNotFound(taskId);
  if (!isRoot) {
    throw new DeputeError(
      ErrorReason.TASK_NOT_FOUND,
      "the task does not exist, or the caller may not see it; begin a conversation with an id without dots",
      {
        metadata: { task: taskId },
      },
    );
  }
  if (kind.case === "message" && kind.value.completesTask === true) throw notHolder();
  return { does: "say", fromOutside: true };
}

/** Refuses a task id if neither the task nor its parent exists. A root's id is always allowed. */
function requireTask(taskId: string, { task, parent }: Facts): void {
  if (task === undefined && parent === undefined && parentIdOf(taskId) !== "") throw taskNotFound(taskId);
}

function talk(
  {
    senderId,
    recipientId,
    content,
    completesTask,
  }: Extract<CapMessage["kind"], { case: "message" }>["value"],
  { task, hasOpenParts, subject, plainApproval }: Facts,
): Intent {
  const isToDelegator = subject?.delegatorId === recipientId;
  if (plainApproval && isToDelegator && isOverseer(subject, senderId) && isHeld(subject)) {
    return { does: "decide", reviewed: subject, verdict: Verdicts.APPROVED, comment: content };
  }
  const isOwn = subject !== undefined && isHeld(subject) && subject.agentId === senderId;
  const intentText: Intent =
    isOwn && isOverseer(subject, recipientId) ? { does: "say", answers: subject } : { does: "say" };
  const isAnswer =
    task !== undefined && task.agentId === senderId && task.delegatorId === recipientId && isOpen(task);
  if (!isAnswer) {
    if (completesTask !== true) return intentText;
    throw notHolder();
  }
  if (task.reviewsId !== "") {
    if (completesTask !== true) return { does: "say" };
    throw ruleNotMet("review", "only an oversight_decision completes a review");
  }
  // By default a holder's plain message is the task's result, with two exceptions. An agent with an overseer may ask a
  // question without completing its task. A holder with open child tasks may also write without completing its task.
  const isResult = completesTask ?? (task.overseerId === "" && !hasOpenParts);
  return isResult ? { does: "complete", task } : { does: "say" };
}

/**
 * Returns the effect of a delegation notice under a new id, or under the id of an unsuccessful task. The parent's
 * holder and the orchestrator may retry such a task, with any agent. (CAP "Observability & Error Handling")
 */
function delegation(notice: DelegationNotice, { task, parent, holdersAbove }: Facts): Intent {
  const { taskId, senderId, recipientId } = notice;
  if (senderId === USER)
    throw notAllowed("role", "the user may not delegate; the orchestrator delegates for the user");
  if (isRole(recipientId)) throw notAllowed("role", `a task may not be delegated to ${recipientId}`);
  if (taskId.length > MAX_TASK_ID) {
    throw invalid("message.task_id", `of a delegation must have at most ${MAX_TASK_ID} characters`);
  }
  const parentId = parentIdOf(taskId);
  if (parentId === "" && senderId !== ORCHESTRATOR) throw notOrchestrator();
  if (parentId !== "" && parent === undefined) throw taskNotFound(parentId);
  const isHolder = parent === undefined || parent.agentId === senderId;
  if (!isHolder && (task === undefined || senderId !== ORCHESTRATOR)) {
    throw notAllowed("holder", `only the holder of ${parentId} may delegate its child tasks`);
  }
  if (task !== undefined && !hasFailed(task.status)) throw taskIdTaken(task);
  const again = task === undefined ? {} : { again: task };
  if (parent === undefined) return { does: "delegate", notice, submits: false, reviewsId: "", ...again };
  const isReview = task?.reviewsId === parentId && isHeld(parent);
  if (isReview && !isOverseer(parent, recipientId)) {
    throw notAllowed("overseer", `a review of the result of ${parentId} must go to ${parent.overseerId}`);
  }
  if (!isReview && !isOpen(parent)) throw wrongState(parent);
  if (holdersAbove.includes(recipientId)) {
    throw new DeputeError(
      ErrorReason.TASK_CYCLE,
      `${recipientId} holds a task above this task, and waits for its result`,
      {
        metadata: { task: parentId, agent: recipientId, capability: "" },
      },
    );
  }
  const submits = !isReview && isHolder && parent.reviewsId === "" && isOverseer(parent, recipientId);
  return { does: "delegate", notice, submits, reviewsId: submits || isReview ? parentId : "", ...again };
}

/** Whether a task has ended without a result. Another task may then take over the CAP id. */
export function hasFailed(status: TaskStatus): boolean {
  return isTerminal(status) && status !== TaskStatus.COMPLETED;
}

function requireReview(
  taskId: string,
  senderId: string,
  { subject, isEscalated }: Facts,
  decides: boolean,
): TaskFacts {
  if (subject === undefined) throw taskNotFound(taskId);
  const mayDecide = decides && isEscalated && senderId === ORCHESTRATOR;
  if (!isOverseer(subject, senderId) && !mayDecide) {
    throw notAllowed("overseer", `only the overseer of ${subject.agentId} may do this`);
  }
  if (!isHeld(subject)) throw wrongState(subject);
  return subject;
}

/** Whether the task's result waits for the overseer. */
function isHeld({ status }: TaskFacts): boolean {
  return status === TaskStatus.IN_REVIEW;
}

function isOverseer({ overseerId }: TaskFacts, id: string): boolean {
  return overseerId !== "" && baseOf(id) === baseOf(overseerId);
}

/** Whether the task's holder can still work on the task. */
function isOpen({ status }: TaskFacts): boolean {
  return !isTerminal(status) && status !== TaskStatus.IN_REVIEW && status !== TaskStatus.SUSPENDED;
}

function wrongState({ taskId, status }: TaskFacts): DeputeError {
  const name = statusName(status);
  return new DeputeError(ErrorReason.TASK_STATE_CONFLICT, `${taskId} is ${name}`, {
    metadata: { task: taskId, from: name, to: name },
  });
}

function notHolder(): DeputeError {
  return notAllowed(
    "holder",
    "only the holder of an open task may complete it, by a message to its delegator",
  );
}

function notOrchestrator(): DeputeError {
  return notAllowed("root", "only the orchestrator may delegate a task without a parent");
}

function taskIdTaken({ taskId, status }: TaskFacts): DeputeError {
  const why = `the task ${taskId} exists and is ${statusName(status)}; delegate under another id`;
  return new DeputeError(ErrorReason.TASK_ID_TAKEN, why, { metadata: { external_id: taskId } });
}

/** Returns the error for a repeated notice whose task has failed since the first notice. */
export function failedSince({ taskId, status }: TaskFacts, failure: Failure): DeputeError {
  const name = statusName(status);
  const why = failure.errorMessage === "" ? "" : ` (${failure.errorMessage})`;
  return new DeputeError(
    ErrorReason.TASK_STATE_CONFLICT,
    `${taskId} has ended as ${name} with code ${failure.errorCode}${why}; to retry the task under this id, send a notice with another ` +
      "idempotency key, another text or another recipient",
    { metadata: { task: taskId, from: name, to: "pending", failure_code: String(failure.errorCode) } },
  );
}

/** Returns the error for a message that the sender may not send. */
export function notAllowed(rule: string, why: string): DeputeError {
  return new DeputeError(ErrorReason.MESSAGE_NOT_ALLOWED, why, { metadata: { rule } });
}

/** Returns the error for a message that does not meet a condition of its rule. */
export function ruleNotMet(rule: string, why: string): DeputeError {
  return new DeputeError(ErrorReason.MESSAGE_RULE_NOT_MET, why, { metadata: { rule } });
}
