import { DeputeError, ErrorReason } from "@depute/core";

export type ConstraintKind = "unique" | "foreign_key" | "check" | "not_null" | "other";

/** A row breaks a constraint of its table. What that means to the caller is for the service to say. */
export class ConstraintError extends Error {
  readonly kind: ConstraintKind;

  constructor(kind: ConstraintKind, message: string, options?: { cause: unknown }) {
    super(message, options);
    this.name = "ConstraintError";
    this.kind = kind;
  }
}

/** Whether an insert failed because the key is taken: the usual question of an idempotent call. */
export function isUniqueViolation(error: unknown): error is ConstraintError {
  return error instanceof ConstraintError && error.kind === "unique";
}

const FROM_STORE = { service: "store" };

/**
 * This process can never use the store again: its files are gone, or another process has changed its tables. The process
 * has to end, because what it remembers of the tables may be wrong.
 */
export class StoreLostError extends DeputeError<typeof ErrorReason.DEPENDENCY_UNAVAILABLE> {
  override readonly name = "StoreLostError";
  /** What happened, for the operator. Callers get only the message. */
  readonly detail: string;

  constructor(detail: string, cause?: unknown) {
    const message =
      "the store of the service is lost, and the service ends; call again when it has restarted";
    super(ErrorReason.DEPENDENCY_UNAVAILABLE, message, { metadata: FROM_STORE, cause });
    this.detail = detail;
  }
}

/** The connection broke after COMMIT was sent and before its answer came. */
export class UnknownCommitError extends DeputeError<typeof ErrorReason.DEPENDENCY_UNAVAILABLE> {
  override readonly name = "UnknownCommitError";
  /** Whether the transaction committed. Rejects while the database does not answer. */
  readonly outcome: () => Promise<boolean>;

  constructor(outcome: () => Promise<boolean>, cause: unknown) {
    const message =
      "the connection to the database broke during a commit; repeat the call with its request id";
    super(ErrorReason.DEPENDENCY_UNAVAILABLE, message, { metadata: FROM_STORE, cause });
    this.outcome = outcome;
  }
}

/** Whether an error says that the store cannot be used now, rather than that the caller asked for something wrong. */
export function isStoreFailure(error: unknown): error is DeputeError {
  return (
    error instanceof DeputeError &&
    error.reason === ErrorReason.DEPENDENCY_UNAVAILABLE &&
    error.metadata.service === FROM_STORE.service
  );
}
