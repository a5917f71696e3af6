import { ExecutionStatus } from "@depute/contracts/agenta/delegation/v0/execution_receipt_pb";

const { ACCEPTED, IN_PROGRESS, REJECTED } = ExecutionStatus;

// A partial index is used only by a statement that holds its condition to the letter, so both draw it from here. The
// numbers are the contract's and never change, so neither does the text of a migration.

/** Of executions that their seller works on, or may begin with. */
export const IS_OPEN = `status IN (${ACCEPTED}, ${IN_PROGRESS})`;

/** Of requests that the platform rejected. */
export const IS_REJECTED = `status = ${REJECTED}`;

/** Of requests that became executions. */
export const IS_TAKEN = `status <> ${REJECTED}`;
