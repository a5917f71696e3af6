import { type Task, TaskStatus } from "@depute/contracts/depute/tasks/v1/task_pb";
import { CAP_CODES, type CapAction, capActionOf } from "@depute/core";

const ACTIONS: readonly CapAction[] = ["retry", "reassign", "escalate"];

/**
 * What becomes of a task by the code of its holder's error_response: by the published table, but for what is set.
 *
 * @param settings entries like `502=reassign`
 * @throws Error for an entry that says nothing
 */
export function readActions(settings: readonly string[]): (errorCode: number) => CapAction {
  const own = new Map<number, CapAction>();
  for (const entry of settings) {
    const [code = "", word = ""] = entry.split("=", 2);
    const action = ACTIONS.find((known) => known === word);
    if (!/^\d{1,9}$/.test(code) || action === undefined) {
      throw new Error(
        `cap error actions: \`${entry}\` is not a code, \`=\` and one of ${ACTIONS.join(", ")}`,
      );
    }
    own.set(Number(code), action);
  }
  return (code) => own.get(code) ?? capActionOf(code);
}

/** The word of a failure that an error_response reported: `CAP_504`. */
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

/** How a task ended without a result, as an error_response says it. */
export interface Failure {
  readonly errorCode: number;
  readonly errorMessage: string;
}

/** How an unsuccessful task ended. */
export function failureIn({ status, failure }: Pick<Task, "status" | "failure">): Failure {
  const reason = failure?.reason ?? "";
  return { errorCode: codeOfEnd(status, reason), errorMessage: failure?.message || reason.toLowerCase() };
}

function codeOfEnd(status: TaskStatus, reason: string): number {
  if (status === TaskStatus.CANCELLED) return codeOfFailure("CANCELLED");
  return status === TaskStatus.REVOKED ? 403 : codeOfFailure(reason);
}

/** CAP's code of a failure, whoever reported it. */
export function codeOfFailure(reason: string): number {
  const reported = /^CAP_(\d{1,10})$/.exec(reason)?.[1];
  return reported === undefined ? (BY_REASON[reason] ?? 500) : Number(reported);
}

/** What a code means, for people. */
export function meaningOf(errorCode: number): string {
  return CAP_CODES.get(errorCode)?.meaning ?? "an error of no listed code";
}
