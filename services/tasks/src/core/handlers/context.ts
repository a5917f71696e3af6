import type { CallOptions, HandlerContext } from "@connectrpc/connect";
import type { Lease } from "@depute/contracts/depute/tasks/v1/worker_service_pb";
import { type Clock, invalid, type Timers } from "@depute/core";
import { type Authority, type BoundsOperators, type Logger, ownOptions, type WakeUps } from "@depute/service";
import type { ReadTx } from "@depute/store";
import { asCaller, type Caller } from "../caller.ts";
import type { ContextMemory } from "../contexts/context-memory.ts";
import type { Dependencies } from "../dependencies.ts";
import type { Engine } from "../engine/engine.ts";
import type { SharedReads } from "../engine/shared-reads.ts";
import type { WatchOptions } from "../engine/watch.ts";
import type { ResultCheck } from "../hooks.ts";
import type { Dispatcher } from "../queue/dispatcher.ts";
import type { ReviewsSlot } from "../reviews-slot.ts";
import type { TaskRecord } from "../rules/record.ts";
import type { TreeLimits } from "../rules/tree.ts";
import { requireVisible, taskNotFound, type Viewer } from "../rules/visibility.ts";
import { findAllByExternalId, findByExternalId } from "../store/task-rows.ts";

/** What the handlers work with. */
export interface TasksContext {
  readonly engine: Engine;
  readonly authority: Authority;
  readonly dependencies: Dependencies;
  readonly clock: Clock;
  readonly timers: Timers;
  readonly log: Logger;
  readonly taskWakeUps: WakeUps;
  /** What watchers read. */
  readonly reads: SharedReads;
  readonly assignmentWakeUps: WakeUps;
  readonly dispatcher: Dispatcher;
  readonly treeLimits: TreeLimits;
  /** Who may widen agents' limits. */
  readonly boundsOperators: BoundsOperators;
  readonly contextMemory: ContextMemory;
  /** The reviews of held results. */
  readonly reviews: ReviewsSlot;
  /** Run on every result in this order, up to the first that fails it. */
  readonly resultChecks: ResultCheck[];
  /** Milliseconds between looks of a stream that nothing wakes. */
  readonly pollMs: number;
  /** Milliseconds of silence after which a stream says that it is alive; 0 for never. */
  readonly streamHeartbeatMs: number;
  /** Aborts when the process drains. */
  readonly stopping: AbortSignal;
}

/** Who calls. */
export async function callerOf({ authority }: TasksContext, context: HandlerContext): Promise<Caller> {
  return asCaller(await authority.identify(context));
}

/** The lease that a worker's call names. */
export function leaseOf({ lease }: { lease?: Lease | undefined }): Lease {
  if (lease === undefined) throw invalid("lease", "is required");
  return lease;
}

/** The options of this service's own calls while it serves one. */
export function callOptions({ clock }: TasksContext, context: HandlerContext): CallOptions {
  return ownOptions(context, clock);
}

/**
 * A task that the caller may change, as it is before the change, which looks again.
 *
 * @throws DeputeError TASK_NOT_FOUND
 */
export async function peekVisible(
  { engine }: TasksContext,
  viewer: Viewer,
  taskId: string,
): Promise<TaskRecord> {
  const record = await engine.peek(taskId);
  if (record === undefined) throw taskNotFound(taskId);
  requireVisible(viewer, record);
  return record;
}

/**
 * A task that the caller may see.
 *
 * @throws DeputeError TASK_NOT_FOUND
 */
export async function findVisible(
  { engine }: TasksContext,
  viewer: Viewer,
  taskId: string,
): Promise<TaskRecord> {
  const record = await engine.find(taskId);
  if (record === undefined) throw taskNotFound(taskId);
  requireVisible(viewer, record);
  return record;
}

export function watchOptions(tasks: TasksContext): WatchOptions {
  const { reads, taskWakeUps: wakeUps, timers, pollMs, stopping } = tasks;
  return { reads, wakeUps, timers, pollMs, stopping };
}

/**
 * The id of the task that a request names, by it or by the caller's own id.
 *
 * @throws DeputeError TASK_NOT_FOUND, INVALID_REQUEST when several agents have tasks of this external id
 */
export async function taskIdOf(
  { engine }: TasksContext,
  { principal }: Caller,
  name: { taskId: string; externalId: string; agentId: string },
): Promise<string> {
  return engine.store.read((tx) => taskIdWithin(tx, principal, name));
}

/** As {@link taskIdOf}, within a transaction. */
export async function taskIdWithin(
  tx: ReadTx,
  principal: string,
  { taskId, externalId, agentId }: { taskId: string; externalId: string; agentId: string },
): Promise<string> {
  if (taskId !== "") return taskId;
  const rows =
    agentId === ""
      ? await findAllByExternalId(tx, principal, externalId, 2)
      : [await findByExternalId(tx, principal, externalId, agentId)];
  const [row, another] = rows;
  if (row === undefined) throw taskNotFound(externalId);
  if (another === undefined) return row.task_id;
  throw invalid("agent_id", "has to say whose task is meant: several agents have tasks of this id");
}
