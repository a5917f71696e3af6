import type { CallOptions } from "@connectrpc/connect";
import type { ReviewVerdict } from "@depute/contracts/depute/verifier/v1/review_service_pb";
import type { ReadTx, WriteTx } from "@depute/store";
import type { TaskRecord } from "./rules/record.ts";

/** A decision on a held result. */
export interface Decision {
  /** UNSPECIFIED when the time for a decision has passed. */
  readonly verdict: ReviewVerdict;
  readonly comment: string;
}

/** Hears of reviews in the transactions that change them. */
export interface ReviewListener {
  /** Before a decision is applied; `isOwn` where the caller tells the parties itself. */
  deciding(tx: WriteTx, record: TaskRecord, decision: Decision, isOwn: boolean): Promise<void>;
  /** When a reviewer has asked something at the queue. */
  inquired(tx: WriteTx, record: TaskRecord, text: string): Promise<void>;
  /** When half of the time has passed and more principals may decide. */
  escalating(tx: WriteTx, record: TaskRecord): Promise<void>;
}

/** What the reviews of held results offer to the engine and the other modules. */
export interface ResultReviews {
  listen(listener: ReviewListener): void;
  /** Tells the listeners of a decision that this transaction applies. */
  deciding(tx: WriteTx, record: TaskRecord, decision: Decision, isOwn: boolean): Promise<void>;
  /** Whether half of the time of a task's review has passed. */
  isEscalated(tx: ReadTx, taskId: string): Promise<boolean>;
  /**
   * Decides on the result that a task holds: at the queue of reviews, then by `apply`.
   *
   * @param reviewer the principal that decides
   * @throws DeputeError TASK_STATE_CONFLICT (no result is held), REVIEW_CLOSED, CALLER_NOT_ALLOWED, CONFLICT_OF_INTEREST,
   * DEPENDENCY_UNAVAILABLE, and what `apply` throws
   */
  decide<T>(
    taskId: string,
    decision: Decision,
    reviewer: string,
    options: CallOptions,
    apply: () => Promise<T>,
  ): Promise<T>;
  /**
   * Puts a question to the author of the result that a task holds: at the queue, then by `apply` with the question's number.
   *
   * @throws DeputeError as {@link decide}
   */
  inquire<T>(
    taskId: string,
    question: { readonly requestId: string; readonly text: string; readonly reviewer: string },
    options: CallOptions,
    apply: (number: number) => Promise<T>,
  ): Promise<T>;
  /** Stores the number of a question that {@link inquire} has put. */
  noteInquiry(tx: WriteTx, taskId: string, number: number): Promise<void>;
  /** Stores the author's answer, for the queue. */
  noteAnswer(tx: WriteTx, taskId: string, text: string, answeredBy: string): Promise<void>;
}
