import { create } from "@bufbuild/protobuf";
import { TaskChangesRequestedSchema } from "@depute/contracts/depute/tasks/v1/task_event_pb";
import { TaskStatus } from "@depute/contracts/depute/tasks/v1/task_pb";
import { ReviewVerdict } from "@depute/contracts/depute/verifier/v1/review_service_pb";
import type { WriteTx } from "@depute/store";
import type { Decision, ResultReviews } from "../reviews-port.ts";
import { type Advance, advance } from "../rules/advance.ts";
import { failureOf, type TaskPayload } from "../rules/apply-event.ts";
import type { TaskRecord } from "../rules/record.ts";
import { REVIEW_REJECTED, REVIEW_TIMED_OUT } from "../rules/review.ts";
import { deleteHeldResult, readHeldResult } from "../store/work-rows.ts";

/**
 * Applies a reviewer's decision to a task in review, and returns the changed task. Leaves a task in any other status
 * unchanged.
 */
export async function decided(
  tx: WriteTx,
  reviews: Pick<ResultReviews, "deciding">,
  record: TaskRecord,
  decision: Decision,
  nowMs: number,
  isOwn: boolean,
): Promise<Advance> {
  if (record.task.status !== TaskStatus.IN_REVIEW) return { record, events: [] };
  await reviews.deciding(tx, record, decision, isOwn);
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
