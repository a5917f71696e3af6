import { TaskStatus } from "@depute/contracts/depute/tasks/v1/task_pb";
import { ReviewVerdict } from "@depute/contracts/depute/verifier/v1/review_service_pb";

/** The failure's word when an overseer rejected a result. */
export const REVIEW_REJECTED = "REVIEW_REJECTED";

/** The failure's word when the time for a decision passed. */
export const REVIEW_TIMED_OUT = "REVIEW_TIMED_OUT";

/** The status of a task after a verdict on the result that it holds. */
export function outcomeOf(verdict: ReviewVerdict): TaskStatus {
  if (verdict === ReviewVerdict.APPROVED) return TaskStatus.COMPLETED;
  return verdict === ReviewVerdict.CHANGES_REQUESTED ? TaskStatus.PENDING : TaskStatus.FAILED;
}
