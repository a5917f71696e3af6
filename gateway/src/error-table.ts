import { ErrorReason, reasonName, Status, statusOf } from "@depute/core";
import { type ErrorRow, JSON_RPC, OWN } from "./own-codes.ts";

/** A wire's own form of every reason of the vocabulary. */
export type ErrorTable = ReadonlyMap<ErrorReason, ErrorRow>;

/** What a reason is on a wire that has no word of its own for it: what its gRPC status means. */
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
 * The table of a wire: its own rows, and for every other reason what its status means.
 *
 * @param own by the reasons' names
 */
export function errorTable(own: Readonly<Partial<Record<keyof typeof ErrorReason, ErrorRow>>>): ErrorTable {
  return new Map(
    Object.values(ErrorReason).map((reason) => {
      const name = reasonName(reason) as keyof typeof ErrorReason;
      return [reason, own[name] ?? byStatus.get(statusOf(reason)) ?? JSON_RPC.INTERNAL_ERROR];
    }),
  );
}

/** The row of a reason; that of INTERNAL for a reason from a later version. */
export function rowOf(table: ErrorTable, reason: ErrorReason): ErrorRow {
  return table.get(reason) ?? JSON_RPC.INTERNAL_ERROR;
}
