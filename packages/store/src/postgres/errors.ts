import { DeputeError, ErrorReason } from "@depute/core";
import { DatabaseError } from "pg";
import { ConstraintError, type ConstraintKind } from "../errors.ts";
import { StoreKeyError } from "../keys.ts";
import { MigrationError } from "../migrations.ts";

/** Error codes of Postgres, class 23: integrity constraint violations. */
const KINDS: Record<string, ConstraintKind> = {
  "23502": "not_null",
  "23503": "foreign_key",
  "23505": "unique",
  "23514": "check",
};

/** A text with a NUL character, which Postgres cannot keep. */
const CHARACTER_NOT_IN_REPERTOIRE = "22021";

/** Connection, resources, operator intervention, system: a retry may help. Also serialization failures. */
const UNAVAILABLE = new Set(["08", "40", "53", "57", "58"]);

const OURS = [DeputeError, ConstraintError, MigrationError, StoreKeyError];

/** The store's own error for one of node-postgres'; others are returned as they are. */
export function fromPostgresError(error: unknown): unknown {
  if (OURS.some((type) => error instanceof type)) return error;
  if (!(error instanceof DatabaseError)) return databaseUnavailable(error);
  const code = error.code ?? "";
  if (code.startsWith("23"))
    return new ConstraintError(KINDS[code] ?? "other", error.message, { cause: error });
  if (code === CHARACTER_NOT_IN_REPERTOIRE) {
    return new DeputeError(ErrorReason.INVALID_REQUEST, "a text has a character that cannot be stored", {
      cause: error,
    });
  }
  return UNAVAILABLE.has(code.slice(0, 2)) ? databaseUnavailable(error) : error;
}

/**
 * Whether a connection is of no use after this error. node-postgres raises errors of its own, and of the socket, for a
 * connection that broke or does not answer.
 */
export function endsConnection(error: unknown): boolean {
  return !(error instanceof DatabaseError) || isFatal(error);
}

/** Whether Postgres ends the session with this error. */
export function isFatal(error: unknown): boolean {
  if (!(error instanceof DatabaseError)) return false;
  return error.severity === "FATAL" || error.severity === "PANIC" || error.code?.startsWith("08") === true;
}

/** Whether Postgres is there, and starts or ends. */
export function isStarting(error: unknown): boolean {
  return error instanceof DatabaseError && error.code?.startsWith("57P") === true;
}

export function databaseUnavailable(cause: unknown, message = "the database does not answer"): DeputeError {
  return new DeputeError(ErrorReason.DEPENDENCY_UNAVAILABLE, message, {
    metadata: { service: "store" },
    cause,
  });
}
