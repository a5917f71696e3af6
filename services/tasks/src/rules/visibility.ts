import { DeputeError, ErrorReason } from "@depute/core";
import type { TaskRecord } from "./record.ts";

/** Who looks: the principal, and whom else it may act for. */
export interface Viewer {
  readonly principal: string;
  mayActFor(principal: string | undefined): boolean;
}

/** Whether a task is the viewer's to see: it created it, or it is, or may act for, the delegate. */
export function canSee(viewer: Viewer, record: TaskRecord): boolean {
  return isDelegator(viewer, record) || isDelegate(viewer, record);
}

/** Whether the viewer is the task's delegator, or may act for it. */
export function isDelegator(viewer: Viewer, { task }: TaskRecord): boolean {
  return viewer.principal === task.delegator || viewer.mayActFor(task.delegator);
}

/** Whether the viewer may work on the task for its delegate. */
export function isDelegate(viewer: Viewer, { agentPrincipal }: TaskRecord): boolean {
  return viewer.mayActFor(agentPrincipal === "" ? undefined : agentPrincipal);
}

/** What is not the caller's looks like what does not exist. */
export function taskNotFound(task: string): DeputeError {
  return new DeputeError(ErrorReason.TASK_NOT_FOUND, "no such task", { metadata: { task } });
}
