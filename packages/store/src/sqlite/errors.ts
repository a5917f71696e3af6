import { DeputeError, ErrorReason } from "@depute/core";
import { ConstraintError, type ConstraintKind } from "../errors.ts";

/** SQLite's primary result codes (sqlite.org/rescode.html): the low byte of `errcode`. */
const CONSTRAINT = 19;
/** BUSY, LOCKED, IOERR, FULL, CANTOPEN: the disk or another process, so a retry may help. */
const UNAVAILABLE = new Set([5, 6, 10, 13, 14]);

/** Extended result codes of broken constraints. */
const KINDS = new Map<number, ConstraintKind>([
  [275, "check"],
  [787, "foreign_key"],
  [1299, "not_null"],
  [1555, "unique"], // PRIMARYKEY
  [2067, "unique"],
  [2579, "unique"], // ROWID
]);

/** The store's own error for one of SQLite's; others are returned as they are. */
export function fromSqliteError(error: unknown): unknown {
  if (!(error instanceof Error) || !("errcode" in error) || typeof error.errcode !== "number") return error;
  const primary = error.errcode & 0xff;
  if (primary === CONSTRAINT) {
    return new ConstraintError(KINDS.get(error.errcode) ?? "other", error.message, { cause: error });
  }
  if (!UNAVAILABLE.has(primary)) return error;
  return new DeputeError(ErrorReason.DEPENDENCY_UNAVAILABLE, "the database does not answer", {
    metadata: { service: "store" },
    cause: error,
  });
}
