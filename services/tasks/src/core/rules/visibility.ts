import { DeputeError, ErrorReason } from "@depute/core";
import type { TaskRecord } from "./record.ts";

/** A caller that reads a task, or works on it. */
export interface Viewer {
  /**
   * Whether the viewer is this principal, or may act for this principal. For the empty principal, true only if the
   * viewer may act for every principal.
   */
  mayActFor(principal: string): boolean;
}

/** Whether the viewer is the task's delegator. */
export function isDelegator(viewer: Viewer, { task }: TaskRecord): boolean {
  return viewer.mayActFor(task.delegator);
}

/** Whether the viewer may work on the task for its delegate. */
export function isDelegate(viewer: Viewer, { agentPrincipal }: TaskRecord): boolean {
  return viewer.mayActFor(agentPrincipal);
}

/** Whether the viewer is the overseer of the task's results. */
export function isOverseer(viewer: Viewer, { task, overseerPrincipal }: TaskRecord): boolean {
  return task.overseerId !== "" && viewer.mayActFor(overseerPrincipal);
}

/** Whether the viewer may see the task. */
export function isVisible(viewer: Viewer, record: TaskRecord): boolean {
  return isDelegator(viewer, record) || isDelegate(viewer, record) || isOverseer(viewer, record);
}

/**
 * Requires that the viewer is the task's delegator, delegate or overseer.
 *
 * @throws DeputeError TASK_NOT_FOUND, as for a task that does not exist
 */
export function requireVisible(viewer: Viewer, record: TaskRecord): void {
  if (!isVisible(viewer, record)) throw taskNotFound(record.task.id);
}

/**
 * Requires that the viewer may work on the task.
 *
 * @throws DeputeError TASK_NOT_FOUND
 */
export function requireDelegate(viewer: Viewer, record: TaskRecord): void {
  if (!isDelegate(viewer, record)) throw taskNotFound(record.task.id);
}

/** Returns the error for a task that does not exist, or that the caller may not see. */
export function taskNotFound(task: string): DeputeError {
  return new DeputeError(
    ErrorReason.TASK_NOT_FOUND,
    "the task does not exist, or the caller may not see it",
    { metadata: { task } },
  );
}
