import type { CallOptions, HandlerContext } from "@connectrpc/connect";
import type { Lease } from "@depute/contracts/depute/tasks/v1/worker_service_pb";
import { type Clock, invalid, type Timers } from "@depute/core";
import {
  type Authority,
  type BoundsOperators,
  type Identity,
  type Logger,
  mayActFor,
  ownOptions,
  type WakeUps,
} from "@depute/service";
import type { ReadTx } from "@depute/store";
import type { ContextMemory } from "../contexts/context-memory.ts";
import type { Dependencies } from "../dependencies.ts";
import type { Engine } from "../engine/engine.ts";
import type { SharedReads, WatchOptions } from "../engine/watch.ts";
import type { ResultCheck } from "../hooks.ts";
import type { Dispatcher } from "../queue/dispatcher.ts";
import type { ReviewsSlot } from "../reviews-slot.ts";
import type { TaskRecord } from "../rules/record.ts";
import type { TreeLimits } from "../rules/tree.ts";
import { requireVisible, taskNotFound, type Viewer } from "../rules/visibility.ts";
import { findAllByExternalId, findByExternalId, readTask } from "../store/task-rows.ts";

/** The dependencies of the handlers. */
export interface TasksContext {
  readonly engine: Engine;
  readonly authority: Authority;
  readonly dependencies: Dependencies;
  readonly clock: Clock;
  readonly timers: Timers;
  readonly log: Logger;
  readonly taskWakeUps: WakeUps;
  readonly delegatorWakeUps: WakeUps;
  /** The reads of task logs that all watchers of one task share. */
  readonly reads: SharedReads;
  readonly assignmentWakeUps: WakeUps;
  readonly dispatcher: Dispatcher;
  readonly treeLimits: TreeLimits;
  /** The operators that may widen the limits of agents. */
  readonly boundsOperators: BoundsOperators;
  readonly contextMemory: ContextMemory;
  /** Passes the engine's calls to the module that reviews held results. */
  readonly reviews: ReviewsSlot;
  /**
   * The modules' checks of results. They run on every result in this order. The first failed check ends the sequence.
   */
  readonly resultChecks: ResultCheck[];
  /** Milliseconds between two polls of a stream, for changes without a wake-up. */
  readonly pollMs: number;
  /** Milliseconds of silence after which a stream sends a heartbeat; 0 for never. */
  readonly streamHeartbeatMs: number;
  /** Aborts when the process drains. */
  readonly stopping: AbortSignal;
}

/** Identifies the caller of a call. */
export async function callerOf({ authority }: TasksContext, context: HandlerContext): Promise<Caller> {
  return asCaller(await authority.identify(context));
}

/** Returns the lease that a worker's call names. */
export function leaseOf({ lease }: { lease?: Lease | undefined }): Lease {
  if (lease === undefined) throw invalid("lease", "is required");
  return lease;
}

/** Returns the options of the calls that this service itself makes while it serves a request. */
export function callOptions({ clock }: TasksContext, context: HandlerContext): CallOptions {
  return ownOptions(context, clock);
}

/**
 * Reads a task that the caller may see, for an early check before a change. The change itself repeats the check.
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
 * Returns a task that the caller may see.
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
 * The names of a task in a request: its id, or the external id that the delegator chose. If tasks for several agents
 * have the same external id, the request also names the delegate.
 */
export interface TaskName {
  /** The id that the server assigned; empty if `externalId` names the task. */
  readonly taskId: string;
  /** The id that the delegator chose; empty if `taskId` names the task. */
  readonly externalId: string;
  /** The delegate of the task. May be empty if only one agent has a task with this external id. */
  readonly agentId: string;
}

/**
 * Returns the id of the task that a request names.
 *
 * @throws DeputeError TASK_NOT_FOUND, INVALID_REQUEST when several agents have tasks of this external id
 */
export async function taskIdOf(
  { engine }: TasksContext,
  { principal }: Caller,
  name: TaskName,
): Promise<string> {
  if (name.taskId !== "" && name.agentId === "") return name.taskId;
  return engine.store.read((tx) => taskIdWithin(tx, principal, name));
}

/** Does the work of {@link taskIdOf} within the transaction `tx`. */
export async function taskIdWithin(
  tx: ReadTx,
  principal: string,
  { taskId, externalId, agentId }: TaskName,
): Promise<string> {
  if (taskId !== "") {
    // If the request names an agent, a task of another agent counts as not found.
    if (agentId !== "" && (await readTask(tx, taskId))?.task.agentId !== agentId) throw taskNotFound(taskId);
    return taskId;
  }
  const rows =
    agentId === ""
      ? await findAllByExternalId(tx, principal, externalId, 2)
      : [await findByExternalId(tx, principal, externalId, agentId)];
  const [row, another] = rows;
  if (row === undefined) throw taskNotFound(externalId);
  if (another === undefined) return row.task_id;
  throw invalid("agent_id", "is required: several agents have tasks with this external id");
}

/** A caller, with the rights of a viewer of tasks. */
export interface Caller extends Viewer {
  readonly principal: string;
  /** The organization that owns the records that the caller creates; empty for none. */
  readonly organization: string;
}

export function asCaller(identity: Identity): Caller {
  return {
    principal: identity.principal,
    organization: identity.organization,
    mayActFor: (principal) => mayActFor(identity, principal),
  };
}
