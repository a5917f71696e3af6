import { TaskStatus } from "@depute/contracts/depute/tasks/v1/task_pb";
import { IdConflictPolicy, IdReusePolicy } from "@depute/contracts/depute/tasks/v1/task_service_pb";
import { isTerminal } from "./state-machine.ts";

/** The effect of a draft whose external id is in use: attach to the existing task, refuse, or replace that task. */
export type IdOutcome = "attach" | "refuse" | "replace";

export interface IdPolicies {
  readonly reusePolicy: IdReusePolicy;
  readonly conflictPolicy: IdConflictPolicy;
}

/**
 * Returns the effect that the policies have on a draft whose external id is in use.
 *
 * @param status the status of the existing task
 * @param isSame whether the same draft created the existing task
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
