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
import { limitsInForce } from "./limits.ts";
import type { TaskRecord } from "./record.ts";
import { maxAttempts } from "./retry.ts";
import type { Place } from "./tree.ts";

/** The budget of a task that names none. (NEKTE 3) */
export const DEFAULT_BUDGET = { maxTokens: 500, detailLevel: "compact" } as const;

/** What admission found out about a draft. */
export interface Admission {
  readonly delegator: string;
  readonly agentId: string;
  readonly agentPrincipal: string;
  /** Without the agent's name; empty for free work. */
  readonly capabilityId: string;
  readonly capabilityHash: string;
  /** Names the schema that outputs have to fit; empty for none. */
  readonly outputSchema: string;
  readonly delegationId: string;
  /** Who has to approve results; empty for nobody. */
  readonly overseerId: string;
  readonly overseerPrincipal: string;
  /** When the contract has to be fulfilled, epoch milliseconds; undefined without a contract. */
  readonly contractDeadlineMs: number | undefined;
  /** When the work has to have begun, epoch milliseconds; absent for no such time. */
  readonly startByMs?: number;
  /** The execution request that the task carries out; absent for none. */
  readonly executionRequestId?: string;
}

/** The contexts that a task carries. */
export interface CarriedAlong {
  /** The one whose data is the task's input; empty for none. */
  readonly inputId: string;
  /** When the first of them expires, epoch milliseconds; undefined without contexts. */
  readonly expireMs: number | undefined;
}

const NOTHING_CARRIED: CarriedAlong = { inputId: "", expireMs: undefined };

/** What a task gets from the one that it is a part of. */
export interface Above {
  readonly place: Place;
  /** Its share of what may be used up; undefined for no bound. */
  readonly spend: SpendBudget | undefined;
}

/** A task as its creation fixes it, before the first event of its log. */
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
    ...(spend && { spend }),
    ...(admission.startByMs !== undefined && { startExpireTime: toTimestamp(admission.startByMs) }),
  });
}

/** A new task with the first event of its log. */
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
  const value = create(TaskCreatedSchema, { delegator: admission.delegator, agentId: admission.agentId });
  return advance(record, { payload: { case: "created", value }, by: "delegator" }, nowMs);
}
