import { create } from "@bufbuild/protobuf";
import { TaskChangesRequestedSchema } from "@depute/contracts/depute/tasks/v1/task_event_pb";
import { TaskStatus } from "@depute/contracts/depute/tasks/v1/task_pb";
import { ReviewVerdict } from "@depute/contracts/depute/verifier/v1/review_service_pb";
import type { WriteTx } from "@depute/store";
import { type Advance, advance } from "../core/rules/advance.ts";
import { failureOf, type TaskPayload } from "../core/rules/apply-event.ts";
import type { TaskRecord } from "../core/rules/record.ts";
import { deleteHeldResult, readHeldResult } from "../core/store/work-rows.ts";

/** The failure's word when an overseer turned a result down. */
export const REVIEW_REJECTED = "REVIEW_REJECTED";

/** The failure's word when nobody decided in time. */
export const REVIEW_TIMED_OUT = "REVIEW_TIMED_OUT";

/** What was made of a result: a verdict, or none in time. */
export interface Decision {
  /** UNSPECIFIED when the time was over. */
  readonly verdict: ReviewVerdict;
  readonly comment: string;
}

/** The decision that nobody made. */
export const TIMED_OUT: Decision = {
  verdict: ReviewVerdict.UNSPECIFIED,
  comment: "nobody decided on the result in time",
};

/** Moves a task on by what was decided of the result that it holds. */
export async function applyDecision(
  tx: WriteTx,
  record: TaskRecord,
  decision: Decision,
  nowMs: number,
): Promise<Advance> {
  const payload = await payloadOf(tx, record, decision);
  await deleteHeldResult(tx, record.task.id);
  return advance(record, { payload, by: "overseer" }, nowMs);
}

async function payloadOf(
  tx: WriteTx,
  { task }: TaskRecord,
  { verdict, comment }: Decision,
): Promise<TaskPayload> {
  switch (verdict) {
    case ReviewVerdict.APPROVED: {
      const value = await readHeldResult(tx, task.id);
      if (value === undefined) throw new Error(`task ${task.id} is in review and has no result`);
      return { case: "completed", value };
    }
    case ReviewVerdict.CHANGES_REQUESTED: {
      const value = create(TaskChangesRequestedSchema, { comment, attempt: task.attempt });
      return { case: "changesRequested", value };
    }
    case ReviewVerdict.REJECTED:
      return { case: "failed", value: failureOf(REVIEW_REJECTED, comment) };
    default:
      return { case: "failed", value: failureOf(REVIEW_TIMED_OUT, comment) };
  }
}

/** What a task becomes by a verdict. */
export function outcomeOf(verdict: ReviewVerdict): TaskStatus {
  if (verdict === ReviewVerdict.APPROVED) return TaskStatus.COMPLETED;
  return verdict === ReviewVerdict.CHANGES_REQUESTED ? TaskStatus.PENDING : TaskStatus.FAILED;
}
