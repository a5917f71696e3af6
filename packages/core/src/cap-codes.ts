import { type DeputeError, ErrorReason, Status, statusOf } from "./errors.ts";

/** The action on a task when its agent reports an error. (CAP "Observability & Error Handling") */
export type CapAction =
  /** The same agent gets the task again, as often as the task's retry policy allows. */
  | "retry"
  /** Another agent gets the task. */
  | "reassign"
  /** The task fails. Its delegator and the orchestrator are notified. */
  | "escalate";

/** A code of CAP's error_response. */
export interface CapCode {
  readonly meaning: string;
  readonly action: CapAction;
}

/**
 * The codes of CAP's error_response, as Depute defines them. CAP calls the codes standardized, but has no list of
 * codes. It gives one example, 504 "MCP timeout". Depute gives the codes the meaning of HTTP's statuses. A transient
 * fault is retried. A fault of one agent moves the task to another agent. A fault of the request returns to the
 * delegator.
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

/**
 * Returns the action on a task for a code. The action for an unlisted code is `escalate`, for example for 123 in the
 * specification.
 */
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

/** Returns CAP's code for a refusal. The code is always a code in CAP_CODES. */
export function capCodeOf({ reason, metadata }: Pick<DeputeError, "reason" | "metadata">): number {
  if (reason === ErrorReason.MESSAGE_RULE_NOT_MET) return 422;
  if (reason === ErrorReason.LIMIT_EXCEEDED) return codeOfLimit(metadata.limit ?? "");
  return byStatus.get(statusOf(reason)) ?? 500;
}

/**
 * Returns the code for an exceeded limit. A size limit gives 400, and a limit of a task tree gives 422, because a retry
 * cannot succeed. All other limits may have room later, so their code is 429.
 */
function codeOfLimit(limit: string): number {
  if (/(bytes|depth|length|items|attachments)$/.test(limit) && !limit.startsWith("tree.")) return 400;
  return limit.startsWith("tree.") ? 422 : 429;
}
