import { type Task, TaskStatus } from "@depute/contracts/depute/tasks/v1/task_pb";
import { CAP_CODES, type CapAction, capActionOf } from "@depute/core";

const ACTIONS: readonly CapAction[] = ["retry", "reassign", "escalate"];

/**
 * Returns a function that maps the code of an error_response to CAP's action. The mapping is CAP's published table with
 * the operator's changes.
 *
 * @param settings entries like `502=reassign`
 * @throws Error for a malformed entry
 */
export function readActions(settings: readonly string[]): (errorCode: number) => CapAction {
  const ownActions = new Map<number, CapAction>();
  for (const entry of settings) {
    const [code = "", word = ""] = entry.split("=", 2);
    const action = ACTIONS.find((actionWord) => actionWord === word);
    if (!/^\d{1,9}$/.test(code) || action === undefined) {
      throw new Error(
        `cap error actions: \`${entry}\` must be a code, \`=\` and one of ${ACTIONS.join(", ")}`,
      );
    }
    ownActions.set(Number(code), action);
  }
  return (code) => ownActions.get(code) ?? capActionOf(code);
}

/** Returns the failure reason for the code of an error_response, e.g. `CAP_504`; `CAP_ERROR` for a negative code. */
export function failureWord(errorCode: number): string {
  return errorCode >= 0 ? `CAP_${errorCode}` : "CAP_ERROR";
}

const BY_REASON: Readonly<Record<string, number>> = {
  TASK_TIMEOUT: 408,
  LEASE_LOST: 408,
  REVIEW_TIMED_OUT: 408,
  REVIEW_REJECTED: 422,
  BUDGET_EXCEEDED: 429,
  TOKEN_DENIED: 403,
  CANCELLED: 409,
};

/** The end of a task without a result, in the form of an error_response. */
export interface Failure {
  readonly errorCode: number;
  readonly errorMessage: string;
}

/** Returns how a task failed, in the form of an error_response. */
export function failureIn({ status, failure }: Pick<Task, "status" | "failure">): Failure {
  const reason = failure?.reason ?? "";
  return { errorCode: codeOfEnd(status, reason), errorMessage: failure?.message || reason.toLowerCase() };
}

function codeOfEnd(status: TaskStatus, reason: string): number {
  if (status === TaskStatus.CANCELLED) return codeOfFailure("CANCELLED");
  return status === TaskStatus.REVOKED ? 403 : codeOfFailure(reason);
}

/** Returns CAP's code for a failure reason: 500 for a reason without a code of its own. */
export function codeOfFailure(reason: string): number {
  const reported = /^CAP_(\d{1,10})$/.exec(reason)?.[1];
  return reported === undefined ? (BY_REASON[reason] ?? 500) : Number(reported);
}

/** Returns the meaning of a code in words for people. */
export function meaningOf(errorCode: number): string {
  return CAP_CODES.get(errorCode)?.meaning ?? "an error with an unlisted code";
}
