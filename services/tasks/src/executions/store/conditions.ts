import { ExecutionStatus } from "@depute/contracts/agenta/delegation/v0/execution_receipt_pb";

const { ACCEPTED, IN_PROGRESS, REJECTED } = ExecutionStatus;

// A database uses a partial index only for a statement that repeats the index's condition literally. So indexes and
// statements share these conditions. Status numbers come from the protobuf contract and never change, so the text of a
// released migration never changes either.

/** The condition for accepted executions that have not ended. */
export const IS_OPEN = `status IN (${ACCEPTED}, ${IN_PROGRESS})`;

/** The condition for requests that the platform rejected. */
export const IS_REJECTED = `status = ${REJECTED}`;

/** The condition for requests that the platform accepted. */
export const IS_TAKEN = `status <> ${REJECTED}`;
