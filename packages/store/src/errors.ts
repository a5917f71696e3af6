import { DeputeError, ErrorReason } from "@depute/core";

export type ConstraintKind = "unique" | "foreign_key" | "check" | "not_null" | "other";

/** Thrown when a row breaks a constraint of its table. The service decides which error the caller gets. */
export class ConstraintError extends Error {
  readonly kind: ConstraintKind;

  constructor(kind: ConstraintKind, message: string, options?: { cause: unknown }) {
    super(message, options);
    this.name = "ConstraintError";
    this.kind = kind;
  }
}

/**
 * Whether an insert failed because a row with the same key exists. Idempotent calls use this function to detect a
 * repeated call.
 */
export function isUniqueViolation(error: unknown): error is ConstraintError {
  return error instanceof ConstraintError && error.kind === "unique";
}

/** Thrown when the file of a store cannot be opened. The message names the file, the cause and the remedy. */
export class StoreFileError extends Error {
  override readonly name = "StoreFileError";
}

const FROM_STORE = { service: "store" };

/**
 * Thrown when this process can never use the store again, for example after the files of the store were removed, after
 * a flush to disk failed, or after another process used the tables. The process must end, because the process's caches
 * of the tables may be stale.
 */
export class StoreLostError extends DeputeError<typeof ErrorReason.DEPENDENCY_UNAVAILABLE> {
  override readonly name = "StoreLostError";
  /** The cause, for the operator. Callers get only the message. */
  readonly detail: string;

  constructor(detail: string, cause?: unknown) {
    const message = "the service lost its store and shuts down; call again after its restart";
    super(ErrorReason.DEPENDENCY_UNAVAILABLE, message, { metadata: FROM_STORE, cause });
    this.detail = detail;
  }
}

/** Thrown when the connection broke after COMMIT was sent and before the database's response arrived. */
export class UnknownCommitError extends DeputeError<typeof ErrorReason.DEPENDENCY_UNAVAILABLE> {
  override readonly name = "UnknownCommitError";
  /** Returns whether the transaction committed. The promise rejects while the database does not respond. */
  readonly outcome: () => Promise<boolean>;

  constructor(outcome: () => Promise<boolean>, cause: unknown) {
    const message =
      "the connection to the database broke during a commit; repeat the call with its request id";
    super(ErrorReason.DEPENDENCY_UNAVAILABLE, message, { metadata: FROM_STORE, cause });
    this.outcome = outcome;
  }
}

/**
 * Another transaction of the database prevented this transaction: a serialization failure or a deadlock.
 * Nothing is stored, and the store stays usable.
 */
export class ConflictError extends DeputeError<typeof ErrorReason.DEPENDENCY_UNAVAILABLE> {
  override readonly name = "ConflictError";

  constructor(cause: unknown) {
    const message = "a concurrent transaction changed the same records; call again";
    super(ErrorReason.DEPENDENCY_UNAVAILABLE, message, { metadata: FROM_STORE, cause });
  }
}

/** Whether the error is a failure of the store itself. A conflict, a refusal and a fault of the request are not. */
export function isStoreFailure(error: unknown): error is DeputeError {
  return (
    error instanceof DeputeError &&
    !(error instanceof ConflictError) &&
    error.reason === ErrorReason.DEPENDENCY_UNAVAILABLE &&
    error.metadata.service === FROM_STORE.service
  );
}
