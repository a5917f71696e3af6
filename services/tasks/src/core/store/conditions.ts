import { TaskStatus } from "@depute/contracts/depute/tasks/v1/task_pb";

// A partial index is used only by a statement that holds its condition to the letter, so both draw it from here. The
// numbers are the contract's and never change, so neither does the text of a migration.

/** Of tasks that wait for a worker. */
export const IS_PENDING = `status = ${TaskStatus.PENDING}`;
