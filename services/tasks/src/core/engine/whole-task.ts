import { type Task, TaskStatus } from "@depute/contracts/depute/tasks/v1/task_pb";
import type { ReadTx } from "@depute/store";
import type { TaskRecord } from "../rules/record.ts";
import { readEvents, readInput } from "../store/task-rows.ts";
import { readHeldResult } from "../store/work-rows.ts";

/**
 * Returns the task with its input and, if it is completed, its result: output, usage and verification.
 *
 * @param seesHeld whether to include a held result
 */
export async function wholeTask(tx: ReadTx, { task }: TaskRecord, seesHeld = false): Promise<Task> {
  const { input } = await readInput(tx, task.id);
  const fullTask: Task = { ...task };
  if (input !== undefined) fullTask.input = input;
  const result = await resultOf(tx, task, seesHeld);
  if (result?.output !== undefined) fullTask.output = result.output;
  if (result?.usage !== undefined) fullTask.usage = result.usage;
  if (result?.verification !== undefined) fullTask.verification = result.verification;
  return fullTask;
}

async function resultOf(tx: ReadTx, { id, status, lastSequence }: Task, seesHeld: boolean) {
  if (status === TaskStatus.IN_REVIEW) return seesHeld ? readHeldResult(tx, id) : undefined;
  if (status !== TaskStatus.COMPLETED) return undefined;
  // The store keeps the output only in the last event of the log.
  const [last] = await readEvents(tx, id, lastSequence - 1n, 1);
  return last?.payload.case === "completed" ? last.payload.value : undefined;
}
