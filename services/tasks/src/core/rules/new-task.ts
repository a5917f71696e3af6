import { create } from "@bufbuild/protobuf";
import { durationMs } from "@bufbuild/protobuf/wkt";
import { TaskCreatedSchema } from "@depute/contracts/depute/tasks/v1/task_event_pb";
import {
  RetryPolicySchema,
  type SpendBudget,
  type Task,
  TaskSchema,
} from "@depute/contracts/depute/tasks/v1/task_pb";
import type { TaskDraft } from "@depute/contracts/depute/tasks/v1/task_service_pb";
import { TokenBudgetSchema } from "@depute/contracts/nekte/v1/nekte_pb";
import { toTimestamp } from "@depute/core";
import { type Advance, advance } from "./advance.ts";
import { limitsInForce, maxAttempts } from "./limits.ts";
import type { TaskRecord } from "./record.ts";
import type { Place } from "./tree.ts";

/** The budget, in tokens of a language model, of a task whose draft states none. (NEKTE 3) */
export const DEFAULT_BUDGET = { maxTokens: 500, detailLevel: "compact" } as const;

/** The values that admission determined for a draft: the delegator, the delegate and further values for the task. */
export interface Admission {
  readonly delegator: string;
  readonly agentId: string;
  readonly agentPrincipal: string;
  /** Id of the capability without the agent's name; empty for work without a capability. */
  readonly capabilityId: string;
  readonly capabilityHash: string;
  /** The digest of the schema that outputs must fit; empty for none. */
  readonly outputSchema: string;
  readonly delegationId: string;
  /** The overseer that must approve results; empty for none. */
  readonly overseerId: string;
  readonly overseerPrincipal: string;
  /**
   * The deadline of the contract, epoch milliseconds; undefined without a contract, or for a contract without a
   * deadline.
   */
  readonly contractDeadlineMs: number | undefined;
  /** The time by which the work must have begun, epoch milliseconds; absent if there is no such limit. */
  readonly startByMs?: number;
  /** The organization that owns the task, as owningOrganization determines it; absent for none. */
  readonly organization?: string;
  /** Id of the execution request that the task carries out; absent for none. */
  readonly executionRequestId?: string;
}

/** The facts about a task's contexts that the new task stores. */
export interface CarriedAlong {
  /** Id of the context whose data is the task's input; empty for none. */
  readonly inputId: string;
  /** The earliest expiry of the contexts, epoch milliseconds; undefined without contexts. */
  readonly expireMs: number | undefined;
}

const NOTHING_CARRIED: CarriedAlong = { inputId: "", expireMs: undefined };

/** The data that a child task inherits from its parent task. */
export interface Above {
  readonly place: Place;
  /** The organization that owns the parent; empty for none. */
  readonly organization: string;
  /** The child's share of the budget; undefined for no bound. */
  readonly spend: SpendBudget | undefined;
}

/** Returns a task before its first event, with the fields that its creation fixes. */
export function draftedTask(
  id: string,
  draft: TaskDraft,
  admission: Admission,
  nowMs: number,
  above?: Above,
  carried = NOTHING_CARRIED,
): Task {
  const deadlineMs = Math.min(
    admission.contractDeadlineMs ?? Number.POSITIVE_INFINITY,
    above?.place.deadlineMs ?? Number.POSITIVE_INFINITY,
  );
  const availableMs = Math.max(1, deadlineMs - nowMs);
  const spend = above === undefined ? draft.spend : above.spend;
  const limits = limitsInForce(draft.limits, availableMs);
  const totalMs = limits.total === undefined ? 0 : durationMs(limits.total);
  return create(TaskSchema, {
    id,
    externalId: draft.externalId,
    correlationId: draft.correlationId || (above?.place.correlationId ?? id),
    delegator: admission.delegator,
    agentId: admission.agentId,
    capabilityId: admission.capabilityId,
    capabilityHash: admission.capabilityHash,
    description: draft.description,
    budget: draft.budget ?? create(TokenBudgetSchema, DEFAULT_BUDGET),
    limits,
    retry: { ...(draft.retry ?? create(RetryPolicySchema)), maxAttempts: maxAttempts(draft.retry) },
    contractId: draft.contractId,
    delegationId: admission.delegationId,
    expireTime: toTimestamp(nowMs + totalMs),
    parentTaskId: above?.place.parentTaskId ?? "",
    rootTaskId: above?.place.rootTaskId ?? id,
    depth: above?.place.depth ?? 0,
    priority: draft.priority,
    overseerId: admission.overseerId,
    executionRequestId: admission.executionRequestId ?? "",
    inputContextId: carried.inputId,
    organization: admission.organization ?? "",
    isConversation: draft.message !== undefined,
    ...(spend && { spend }),
    ...(admission.startByMs !== undefined && { startExpireTime: toTimestamp(admission.startByMs) }),
  });
}

/** Returns a new task and its first event. */
export function newTask(
  id: string,
  draft: TaskDraft,
  admission: Admission,
  nowMs: number,
  above?: Above,
  carried = NOTHING_CARRIED,
): Advance {
  const record: TaskRecord = {
    task: draftedTask(id, draft, admission, nowMs, above, carried),
    agentPrincipal: admission.agentPrincipal,
    epoch: 0,
    hold: undefined,
    queuedMs: nowMs,
    contextExpireMs: carried.expireMs,
    settled: undefined,
    overseerPrincipal: admission.overseerPrincipal,
    outputSchema: admission.outputSchema,
  };
  const { delegator, agentId } = admission;
  const { message } = draft;
  const value = create(TaskCreatedSchema, { delegator, agentId, ...(message && { message }) });
  return advance(record, { payload: { case: "created", value }, by: "delegator" }, nowMs);
}
