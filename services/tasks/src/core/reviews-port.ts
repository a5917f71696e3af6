import type { CallOptions } from "@connectrpc/connect";
import type { ReviewVerdict } from "@depute/contracts/depute/verifier/v1/review_service_pb";
import type { ReadTx, WriteTx } from "@depute/store";
import type { TaskRecord } from "./rules/record.ts";

/** A decision on a held result. */
export interface Decision {
  /** UNSPECIFIED if the review ended without a decision, e.g. at its timeout. */
  readonly verdict: ReviewVerdict;
  readonly comment: string;
}

/** Functions that run in the transactions that change reviews. */
export interface ReviewListener {
  /** Runs before a decision applies. If `isOwn` is true, the module that decides notifies the parties itself. */
  deciding(tx: WriteTx, record: TaskRecord, decision: Decision, isOwn: boolean): Promise<void>;
  /** Runs when a reviewer has asked a question in the verifier's review queue. */
  inquired(tx: WriteTx, record: TaskRecord, text: string): Promise<void>;
  /** Runs when half of the review's time has passed. From then on, more principals may decide. */
  escalating(tx: WriteTx, record: TaskRecord): Promise<void>;
}

/** The reviews of held results, for the engine and the other modules. */
export interface ResultReviews {
  listen(listener: ReviewListener): void;
  /** Runs the listeners for a decision, in the transaction that applies the decision. */
  deciding(tx: WriteTx, record: TaskRecord, decision: Decision, isOwn: boolean): Promise<void>;
  /** Whether half of the time of a task's review has passed. */
  isEscalated(tx: ReadTx, taskId: string): Promise<boolean>;
  /**
   * Decides on a held result: first records the decision in the review queue, then calls `apply`.
   *
   * @param reviewer the principal that decides
   * @throws DeputeError TASK_STATE_CONFLICT (no result is held), REVIEW_CLOSED, CALLER_NOT_ALLOWED,
   * CONFLICT_OF_INTEREST, DEPENDENCY_UNAVAILABLE, and the errors of `apply`
   */
  decide<T>(
    taskId: string,
    decision: Decision,
    reviewer: string,
    options: CallOptions,
    apply: () => Promise<T>,
  ): Promise<T>;
  /**
   * Asks a question about a held result: first records the question in the review queue, then calls `apply` with the
   * question's number.
   *
   * @throws DeputeError TASK_STATE_CONFLICT (no result is held), REVIEW_CLOSED, CALLER_NOT_ALLOWED, REQUEST_ID_REUSED,
   * LIMIT_EXCEEDED, DEPENDENCY_UNAVAILABLE, and the errors of `apply`
   */
  inquire<T>(
    taskId: string,
    question: { readonly requestId: string; readonly text: string; readonly reviewer: string },
    options: CallOptions,
    apply: (number: number) => Promise<T>,
  ): Promise<T>;
  /** Stores the number of a question that {@link inquire} has asked. */
  noteInquiry(tx: WriteTx, taskId: string, number: number): Promise<void>;
  /**
   * Stores the answer of the result's author to a reviewer's question. The outbox sends the answer to the verifier
   * service.
   */
  noteAnswer(tx: WriteTx, taskId: string, text: string, answeredBy: string): Promise<void>;
}
