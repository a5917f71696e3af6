import { DeputeError, ErrorReason } from "@depute/core";
import type { TaskRecord } from "./record.ts";

/** Who looks at a task, or works on it. */
export interface Viewer {
  /** Whether the viewer is, or may act for, this principal; never for the empty one unless it may act for anybody. */
  mayActFor(principal: string): boolean;
}

/** Whether the task is the viewer's own, as its delegator. */
export function isDelegator(viewer: Viewer, { task }: TaskRecord): boolean {
  return viewer.mayActFor(task.delegator);
}

/** Whether the viewer may work on the task for its delegate. */
export function isDelegate(viewer: Viewer, { agentPrincipal }: TaskRecord): boolean {
  return viewer.mayActFor(agentPrincipal);
}

/** Whether the viewer decides on the task's results. */
export function isOverseer(viewer: Viewer, { task, overseerPrincipal }: TaskRecord): boolean {
  return task.overseerId !== "" && viewer.mayActFor(overseerPrincipal);
}

/** Whether the viewer may see the task at all. */
export function isVisible(viewer: Viewer, record: TaskRecord): boolean {
  return isDelegator(viewer, record) || isDelegate(viewer, record) || isOverseer(viewer, record);
}

/**
 * Refuses who is neither the task's delegator nor its delegate nor its overseer.
 *
 * @throws DeputeError TASK_NOT_FOUND: what is not the caller's looks like what does not exist
 */
export function requireVisible(viewer: Viewer, record: TaskRecord): void {
  if (!isVisible(viewer, record)) throw taskNotFound(record.task.id);
}

/**
 * Refuses who may not work on the task.
 *
 * @throws DeputeError TASK_NOT_FOUND
 */
export function requireDelegate(viewer: Viewer, record: TaskRecord): void {
  if (!isDelegate(viewer, record)) throw taskNotFound(record.task.id);
}

/** The refusal of a task that is not there for this caller. */
export function taskNotFound(task: string): DeputeError {
  return new DeputeError(ErrorReason.TASK_NOT_FOUND, "no such task", { metadata: { task } });
}
