import { TaskStatus } from "@depute/contracts/depute/tasks/v1/task_pb";

// A database uses a partial index only for a statement that repeats the index's condition literally. So indexes and
// statements share these conditions. Status numbers come from the protobuf contract and never change, so the text of a
// released migration never changes either.

/** The condition for tasks that wait for a worker. */
export const IS_PENDING = `status = ${TaskStatus.PENDING}`;
