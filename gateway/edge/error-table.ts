import { ErrorReason, reasonName, Status, statusOf } from "@depute/core";
import { type ErrorRow, JSON_RPC, OWN } from "./own-codes.ts";

/** For each error reason, the JSON-RPC code and message that a wire sends. */
export type ErrorTable = ReadonlyMap<ErrorReason, ErrorRow>;

/** The code and message for a reason that the wire's own rows do not contain, by the gRPC status of the reason. */
const BY_STATUS: Readonly<Record<keyof typeof Status, ErrorRow>> = {
  UNSPECIFIED: JSON_RPC.INTERNAL_ERROR,
  INVALID_ARGUMENT: JSON_RPC.INVALID_PARAMS,
  DEADLINE_EXCEEDED: OWN.DEADLINE_EXCEEDED,
  NOT_FOUND: OWN.NOT_FOUND,
  ALREADY_EXISTS: OWN.CONFLICT,
  PERMISSION_DENIED: OWN.NOT_ALLOWED,
  RESOURCE_EXHAUSTED: OWN.LIMIT_EXCEEDED,
  FAILED_PRECONDITION: OWN.WRONG_STATE,
  ABORTED: OWN.CONFLICT,
  OUT_OF_RANGE: OWN.WRONG_STATE,
  UNIMPLEMENTED: JSON_RPC.METHOD_NOT_FOUND,
  INTERNAL: JSON_RPC.INTERNAL_ERROR,
  UNAVAILABLE: OWN.UNAVAILABLE,
  UNAUTHENTICATED: OWN.UNAUTHENTICATED,
};

const byStatus = new Map<number, ErrorRow>(
  Object.entries(Status).map(([name, number]) => [number, BY_STATUS[name as keyof typeof Status]]),
);

/**
 * Builds the error table of a wire. A reason that is not in `ownRows` gets the row of its gRPC status.
 *
 * @param ownRows the wire's own rows, by the names of the reasons
 */
export function errorTable(
  ownRows: Readonly<Partial<Record<keyof typeof ErrorReason, ErrorRow>>>,
): ErrorTable {
  return new Map(
    Object.values(ErrorReason).map((reason) => {
      const name = reasonName(reason) as keyof typeof ErrorReason;
      return [reason, ownRows[name] ?? byStatus.get(statusOf(reason)) ?? JSON_RPC.INTERNAL_ERROR];
    }),
  );
}

/**
 * Returns the code and message of a reason. A reason that this version does not know gets the code and message of
 * INTERNAL.
 */
export function rowOf(table: ErrorTable, reason: ErrorReason): ErrorRow {
  return table.get(reason) ?? JSON_RPC.INTERNAL_ERROR;
}
