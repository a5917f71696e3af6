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
