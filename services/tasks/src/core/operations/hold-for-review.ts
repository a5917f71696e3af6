import { create } from "@bufbuild/protobuf";
import { TaskSubmittedSchema } from "@depute/contracts/depute/tasks/v1/task_event_pb";
import type { Task } from "@depute/contracts/depute/tasks/v1/task_pb";
import type { WriteTx } from "@depute/store";
import type { Step } from "../rules/advance.ts";
import { insertHeldResult } from "../store/work-rows.ts";

/** Turns a completion into a held result if the delegate has an overseer. Returns every other step unchanged. */
export async function holdForReview(
  tx: WriteTx,
  { id, attempt, overseerId }: Task,
  step: Step,
): Promise<Step> {
  const { payload } = step;
  if (overseerId === "" || payload.case !== "completed") return step;
  await insertHeldResult(tx, id, payload.value);
  const value = create(TaskSubmittedSchema, { attempt, overseerId });
  return { ...step, payload: { case: "submitted", value } };
}
