import { TaskStatus } from "@depute/contracts/depute/tasks/v1/task_pb";
import { IdConflictPolicy, IdReusePolicy } from "@depute/contracts/depute/tasks/v1/task_service_pb";
import { isTerminal } from "./state-machine.ts";

/** What becomes of a draft whose external id is in use: the task that is there, a refusal, or a new task in its place. */
export type IdOutcome = "attach" | "refuse" | "replace";

export interface IdPolicies {
  readonly reusePolicy: IdReusePolicy;
  readonly conflictPolicy: IdConflictPolicy;
}

/**
 * What the policies say of an external id that names a task.
 *
 * @param status that task's
 * @param isSame whether it was created by the same draft
 */
export function idOutcome(
  status: TaskStatus,
  isSame: boolean,
  { reusePolicy, conflictPolicy }: IdPolicies,
): IdOutcome {
  const byDraft = isSame ? "attach" : "refuse";
  if (isTerminal(status)) {
    switch (reusePolicy) {
      case IdReusePolicy.ALLOW:
        return "replace";
      case IdReusePolicy.ALLOW_UNSUCCESSFUL:
        return status === TaskStatus.COMPLETED ? byDraft : "replace";
      case IdReusePolicy.REJECT:
        return "refuse";
      default:
        return byDraft;
    }
  }
  switch (conflictPolicy) {
    case IdConflictPolicy.USE_EXISTING:
      return "attach";
    case IdConflictPolicy.TERMINATE_EXISTING:
      return "replace";
    case IdConflictPolicy.REJECT:
      return "refuse";
    default:
      return byDraft;
  }
}
