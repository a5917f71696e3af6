import { type DeputeError, ErrorReason, Status, statusOf } from "./errors.ts";

/** What becomes of a task whose holder reports an error. (CAP "Observability & Error Handling") */
export type CapAction =
  /** The same agent gets it again, as often as its retry policy says. */
  | "retry"
  /** Another agent gets it. */
  | "reassign"
  /** It fails, and who waits for it and the orchestrator are told. */
  | "escalate";

/** A code of CAP's error_response. */
export interface CapCode {
  readonly meaning: string;
  readonly action: CapAction;
}

/**
 * The codes of CAP's error_response. Depute's choice: they mean what HTTP's statuses of the same numbers do, because the
 * text gives one example, 504 "MCP timeout", and calls the codes standardized without listing them. What may pass is tried
 * again, what one agent cannot do goes to another, and what nobody can do as it is asked goes to who asked.
 */
export const CAP_CODES: ReadonlyMap<number, CapCode> = new Map([
  [400, { meaning: "invalid", action: "escalate" }],
  [401, { meaning: "unauthenticated", action: "escalate" }],
  [403, { meaning: "not allowed", action: "reassign" }],
  [404, { meaning: "unknown agent or task", action: "escalate" }],
  [408, { meaning: "time limit passed", action: "retry" }],
  [409, { meaning: "conflict", action: "retry" }],
  [413, { meaning: "too large", action: "escalate" }],
  [415, { meaning: "wrong media type", action: "escalate" }],
  [422, { meaning: "rule not met", action: "escalate" }],
  [429, { meaning: "too much", action: "retry" }],
  [500, { meaning: "internal error", action: "retry" }],
  [502, { meaning: "tool failed", action: "retry" }],
  [503, { meaning: "unavailable", action: "reassign" }],
  [504, { meaning: "tool timed out", action: "retry" }],
]);

/** What becomes of a task with this code. A code that is not listed, the text's 123, is for somebody who knows it. */
export function capActionOf(code: number): CapAction {
  return CAP_CODES.get(code)?.action ?? "escalate";
}

const BY_STATUS: Readonly<Record<keyof typeof Status, number>> = {
  UNSPECIFIED: 500,
  INVALID_ARGUMENT: 400,
  DEADLINE_EXCEEDED: 408,
  NOT_FOUND: 404,
  ALREADY_EXISTS: 409,
  PERMISSION_DENIED: 403,
  RESOURCE_EXHAUSTED: 429,
  FAILED_PRECONDITION: 409,
  ABORTED: 409,
  OUT_OF_RANGE: 400,
  UNIMPLEMENTED: 404,
  INTERNAL: 500,
  UNAVAILABLE: 503,
  UNAUTHENTICATED: 401,
};

const byStatus = new Map<number, number>(
  Object.entries(Status).map(([name, number]) => [number, BY_STATUS[name as keyof typeof Status]]),
);

/** CAP's code of a refusal: always one of the table above. */
export function capCodeOf({ reason, metadata }: Pick<DeputeError, "reason" | "metadata">): number {
  if (reason === ErrorReason.MESSAGE_RULE_NOT_MET) return 422;
  if (reason === ErrorReason.LIMIT_EXCEEDED) return codeOfLimit(metadata.limit ?? "");
  return byStatus.get(statusOf(reason)) ?? 500;
}

/** What is too large stays so; a tree that is full does too; all else has room again later. */
function codeOfLimit(limit: string): number {
  if (/(bytes|depth|length|items|attachments)$/.test(limit) && !limit.startsWith("tree.")) return 400;
  return limit.startsWith("tree.") ? 422 : 429;
}
