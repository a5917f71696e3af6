import { create } from "@bufbuild/protobuf";
import { TaskEventSchema } from "@depute/contracts/depute/tasks/v1/task_event_pb";
import { TaskProgressSchema, TaskStatus } from "@depute/contracts/depute/tasks/v1/task_pb";
import { toTimestamp } from "@depute/core";

/** The text of the worker's reports. */
export const REPORT = "Processing one more batch of reviews";

/** Makes an event in the form into which the service converts a worker's reports. */
export function eventOf(i: number) {
  return create(TaskEventSchema, {
    taskId: "019a0000-0000-7000-8000-000000000000",
    sequence: BigInt(i),
    eventTime: toTimestamp(Date.UTC(2026, 0, 1) + i),
    status: TaskStatus.RUNNING,
    previousStatus: TaskStatus.RUNNING,
    payload: { case: "progress", value: create(TaskProgressSchema, { processed: i, message: REPORT }) },
  });
}
