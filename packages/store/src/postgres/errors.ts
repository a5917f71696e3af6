import { DeputeError, ErrorReason } from "@depute/core";
import { DatabaseError } from "pg";
import { ConflictError, ConstraintError, type ConstraintKind } from "../errors.ts";
import { StoreKeyError } from "../keys.ts";
import { MigrationError } from "../migrations.ts";

/** Error codes of Postgres, class 23: integrity constraint violations. */
const KINDS: Record<string, ConstraintKind> = {
  "23502": "not_null",
  "23503": "foreign_key",
  "23505": "unique",
  "23514": "check",
};

/** The error code for a text with a NUL character, which Postgres cannot store. */
const CHARACTER_NOT_IN_REPERTOIRE = "22021";

/** Error codes of a transaction that another transaction prevented: serialization_failure, deadlock_detected. */
const CONFLICTS = new Set(["40001", "40P01"]);

/**
 * Classes of errors after which a retry may help: connection, state of the transaction, serialization, resources,
 * operator intervention, system.
 */
const UNAVAILABLE = new Set(["08", "25", "40", "53", "57", "58"]);

const OURS = [DeputeError, ConstraintError, MigrationError, StoreKeyError];

/**
 * Converts an error of a call to Postgres to the corresponding error of the store. An error that Postgres did not send
 * means that the database does not answer. Errors of the store, and errors of Postgres without a counterpart, are
 * returned unchanged.
 */
export function fromPostgresError(error: unknown): unknown {
  if (OURS.some((type) => error instanceof type)) return error;
  if (!(error instanceof DatabaseError)) return databaseUnavailable(error);
  const code = error.code ?? "";
  if (code.startsWith("23"))
    return new ConstraintError(KINDS[code] ?? "other", error.message, { cause: error });
  if (CONFLICTS.has(code)) return new ConflictError(error);
  if (code === CHARACTER_NOT_IN_REPERTOIRE) {
    return new DeputeError(
      ErrorReason.INVALID_REQUEST,
      "a text contains the character NUL, which cannot be stored; remove it",
      {
        cause: error,
      },
    );
  }
  return UNAVAILABLE.has(code.slice(0, 2)) || isFatal(error) ? databaseUnavailable(error) : error;
}

/**
 * Whether a connection is unusable after this error. A broken or silent connection raises an error that is not a
 * DatabaseError of node-postgres.
 */
export function endsConnection(error: unknown): boolean {
  return !(error instanceof DatabaseError) || isFatal(error);
}

/**
 * The error (feature_not_supported) of a prepared statement after another process changed the columns that the
 * statement returns. The statement fails until the Postgres session ends. Postgres uses this code for other errors too,
 * so the message is compared as well.
 */
const STALE_PLAN = { code: "0A000", message: "cached plan must not change result type" };

/**
 * Whether a Postgres session is unusable after this error: Postgres ends the session, or the session's prepared
 * statements are stale.
 */
export function isFatal(error: unknown): boolean {
  if (!(error instanceof DatabaseError)) return false;
  if (error.code === STALE_PLAN.code && error.message === STALE_PLAN.message) return true;
  return error.severity === "FATAL" || error.severity === "PANIC" || error.code?.startsWith("08") === true;
}

/** Whether the error shows that Postgres is reachable, but is starting or shutting down. */
export function isStarting(error: unknown): boolean {
  return error instanceof DatabaseError && error.code?.startsWith("57P") === true;
}

/**
 * Whether the error means that a connection did not open in time. node-postgres gives this error no code, so its
 * message is compared.
 */
export function isTimeout(error: unknown): boolean {
  return error instanceof Error && error.message === "timeout expired";
}

export function databaseUnavailable(cause: unknown, message = "the database does not answer"): DeputeError {
  return new DeputeError(ErrorReason.DEPENDENCY_UNAVAILABLE, message, {
    metadata: { service: "store" },
    cause,
  });
}
