import type { Task } from "@depute/contracts/depute/tasks/v1/task_pb";
import type { TaskDraft } from "@depute/contracts/depute/tasks/v1/task_service_pb";
import { DeputeError, ErrorReason, fromTimestamp } from "@depute/core";
import { isTerminal, stateConflict } from "./state-machine.ts";

/** How large a tree of tasks may grow. */
export interface TreeLimits {
  /** Tasks above a task, at most. */
  readonly maxDepth: number;
  /** Parts that a task may ever have. */
  readonly maxChildren: number;
  /** Tasks below one root that have not ended; they end in one transaction with it. */
  readonly maxOpen: number;
}

/** A tree as it is, where something is to be added. */
export interface TreeState {
  /** The task that shall have another part, and those above it, the root last. */
  readonly lineage: readonly [Task, ...Task[]];
  /** Parts that it has had so far. */
  readonly children: number;
  /** Tasks below the root that have not ended. */
  readonly open: number;
}

/** Where a new task stands. */
export interface Place {
  readonly parentTaskId: string;
  readonly rootTaskId: string;
  readonly depth: number;
  readonly correlationId: string;
  /** When the parent's total limit passes, epoch milliseconds. */
  readonly deadlineMs: number;
}

/**
 * The place of a new part of a task. Depute's choice: work is held to be going round when an agent is asked for the same
 * capability (or, in free work, with the same words) as further up, because whoever waits for itself waits for ever.
 *
 * @throws DeputeError TASK_STATE_CONFLICT (the parent has ended), TASK_CYCLE, LIMIT_EXCEEDED
 */
export function placeUnder(
  { lineage, children, open }: TreeState,
  asked: { agentId: string; capabilityId: string; description: string },
  { maxDepth, maxChildren, maxOpen }: TreeLimits,
): Place {
  const [parent] = lineage;
  const root = lineage.at(-1) ?? parent;
  if (isTerminal(parent.status)) throw stateConflict(parent.id, parent.status, parent.status);
  for (const above of lineage) if (isSameWork(above, asked)) throw cycle(above);
  if (lineage.length > maxDepth) throw exceeded("depth", maxDepth);
  if (children >= maxChildren) throw exceeded("children", maxChildren);
  if (open >= maxOpen) throw exceeded("open_tasks", maxOpen);
  return {
    parentTaskId: parent.id,
    rootTaskId: root.id,
    depth: lineage.length,
    correlationId: parent.correlationId,
    deadlineMs: parent.expireTime === undefined ? Number.POSITIVE_INFINITY : fromTimestamp(parent.expireTime),
  };
}

/** What is told of a task to somebody who may not see it, but sees one of its tree: its place and its standing. */
export function outlineOf(task: Task): Task {
  const { externalId: _id, description: _words, input: _input, output: _output, ...rest } = task;
  const outline: Task = { ...rest, externalId: "", description: "", contractId: "", delegationId: "" };
  for (const name of [
    "budget",
    "spend",
    "progress",
    "question",
    "verification",
    "usage",
    "estimate",
  ] as const) {
    delete outline[name];
  }
  if (outline.failure !== undefined) outline.failure = { ...outline.failure, message: "" };
  return { ...outline, reviewComment: "", attestationId: "", correlationId: "" };
}

function isSameWork(
  above: Task,
  { agentId, capabilityId, description }: Pick<TaskDraft, "agentId" | "capabilityId" | "description">,
): boolean {
  if (above.agentId !== agentId || above.capabilityId !== capabilityId) return false;
  return capabilityId !== "" || above.description === description;
}

function cycle({ id, agentId, capabilityId }: Task): DeputeError {
  return new DeputeError(ErrorReason.TASK_CYCLE, "the work would come back to where it comes from", {
    metadata: { task: id, agent: agentId, capability: capabilityId },
    violations: [{ field: "draft.parent_task_id", description: "is a part of the same work" }],
  });
}

function exceeded(what: string, max: number): DeputeError {
  const description = `the tree would have more than ${max} (${what})`;
  return new DeputeError(ErrorReason.LIMIT_EXCEEDED, description, {
    metadata: { limit: `tree.${what}`, max: String(max) },
    violations: [{ field: "draft.parent_task_id", description }],
  });
}
