import type { Task } from "@depute/contracts/depute/tasks/v1/task_pb";
import type { TaskDraft } from "@depute/contracts/depute/tasks/v1/task_service_pb";
import { DeputeError, ErrorReason, fromTimestamp } from "@depute/core";
import { isTerminal, stateConflict } from "./state-machine.ts";

/** Limits on the size of a tree of tasks. */
export interface TreeLimits {
  /** Maximum number of tasks above a task. */
  readonly maxDepth: number;
  /** Maximum number of children that a task may have in total, including ended children. */
  readonly maxChildren: number;
  /** Maximum number of open tasks below one root. One transaction ends all these tasks together with the root. */
  readonly maxOpen: number;
}

/** The present tree, before a child task is added. */
export interface TreeState {
  /** The new child's parent first, then the parent's ancestors up to the root. */
  readonly lineage: readonly [Task, ...Task[]];
  /** Number of children that the parent has had, including ended children. */
  readonly children: number;
  /** Number of open tasks below the root. */
  readonly open: number;
}

/** The position of a new task in its tree, and the values that the tree determines. */
export interface Place {
  readonly parentTaskId: string;
  readonly rootTaskId: string;
  readonly depth: number;
  readonly correlationId: string;
  /** The deadline of the parent, epoch milliseconds; infinite if the parent has none. */
  readonly deadlineMs: number;
}

/**
 * Returns the position of a new child task. A cycle exists if two tasks on one path have the same agent and capability;
 * for work without a capability, the same agent and description. Depute's choice: cycles are refused, because a task
 * that waits for itself never ends.
 *
 * @throws DeputeError TASK_STATE_CONFLICT (the parent has ended), TASK_CYCLE, LIMIT_EXCEEDED
 */
export function placeUnder(
  { lineage, children, open }: TreeState,
  draft: { agentId: string; capabilityId: string; description: string },
  { maxDepth, maxChildren, maxOpen }: TreeLimits,
): Place {
  const [parent] = lineage;
  const root = lineage.at(-1) ?? parent;
  if (isTerminal(parent.status)) throw stateConflict(parent.id, parent.status, parent.status);
  for (const above of lineage) if (isSameWork(above, draft)) throw cycle(above);
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

/**
 * Returns a task without its content, for a viewer that may see the tree but not the task. The position in the tree,
 * the parties and the status remain.
 */
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
  return new DeputeError(
    ErrorReason.TASK_CYCLE,
    "the task repeats the work of a task above it: delegate other work, or delegate to another agent",
    {
      metadata: { task: id, agent: agentId, capability: capabilityId },
      violations: [{ field: "draft.parent_task_id", description: "names a task below the same work" }],
    },
  );
}

function exceeded(bound: string, max: number): DeputeError {
  const description = `the tree would have more than ${max} (${bound})`;
  return new DeputeError(ErrorReason.LIMIT_EXCEEDED, description, {
    metadata: { limit: `tree.${bound}`, max: String(max) },
    violations: [{ field: "draft.parent_task_id", description }],
  });
}
