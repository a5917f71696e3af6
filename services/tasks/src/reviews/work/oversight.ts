import type { CallOptions, Client } from "@connectrpc/connect";
import { TaskStatus } from "@depute/contracts/depute/tasks/v1/task_pb";
import {
  type Review,
  type ReviewService,
  ReviewState,
} from "@depute/contracts/depute/verifier/v1/review_service_pb";
import { type Clock, DeputeError, ErrorReason, fromTimestamp, newId } from "@depute/core";
import { reasonOf } from "@depute/service";
import type { ReadTx, WriteTx } from "@depute/store";
import {
  type Decision,
  type ResultReviews,
  type ReviewListener,
  statusName,
  type TaskChange,
  type TaskEngine,
  type TaskRecord,
} from "../../core/index.ts";
import { insertCall, type ReviewCall } from "../store/call-rows.ts";
import {
  answerInquiries,
  deleteReview,
  insertReview,
  noteEscalated,
  noteInquiry,
  readReview,
  reviewOfTask,
} from "../store/review-rows.ts";
import { decisionOf, undecided } from "./decision.ts";
import { requestOf, shortened } from "./request.ts";

/** The shortest time that a review has, milliseconds. */
const MIN_TIMEOUT_MS = 1000;

export interface OversightOptions {
  readonly engine: TaskEngine;
  readonly clock: Clock;
  readonly reviews: Client<typeof ReviewService>;
  /** How long the verifier waits for a decision, milliseconds. */
  readonly timeoutMs: number;
  /** Principals that may decide as well when half of that is over. */
  readonly escalation: readonly string[];
}

/**
 * What a held result and its review have in common. The verifier owns the review: its times, its questions, who may decide, and
 * the decision. Here is the request for it, in an outbox of the transaction that holds the result, and the consequence of its
 * end, which is applied once.
 */
export class Oversight implements ResultReviews {
  readonly #options: OversightOptions;
  readonly #listeners: ReviewListener[] = [];
  /** Calls about a task that are under way. */
  readonly #calling = new Map<string, Promise<unknown>>();
  #onOwed: () => void = () => {};

  constructor(options: OversightOptions) {
    this.#options = options;
  }

  listen(listener: ReviewListener): void {
    this.#listeners.push(listener);
  }

  /** Tells the listener when the verifier is owed a call. */
  onOwed(listener: () => void): void {
    this.#onOwed = listener;
  }

  /** Follows the engine: a held result asks for a review, and any other end of the waiting withdraws it. */
  async observe(tx: WriteTx, { before, after, events }: TaskChange): Promise<void> {
    const { id: taskId, status } = after.task;
    if (status === TaskStatus.IN_REVIEW) {
      if (!events.some(({ payload }) => payload.case === "submitted")) return;
      const reviewId = newId();
      await insertReview(tx, { reviewId, taskId, timeoutMs: this.#timeoutMs(after) });
      await this.#owe(tx, { method: "create", reviewId, taskId });
    } else if (before?.task.status === TaskStatus.IN_REVIEW) {
      // A decision has deleted the row before it moved the task on.
      const review = await reviewOfTask(tx, taskId);
      if (review === undefined) return;
      await deleteReview(tx, review.reviewId);
      await this.#owe(tx, { method: "withdraw", reviewId: review.reviewId, taskId });
    }
  }

  /** Whether others may decide on the result that a task holds. */
  async isEscalated(tx: ReadTx, taskId: string): Promise<boolean> {
    return (await reviewOfTask(tx, taskId))?.escalated === 1;
  }

  /**
   * Has the verifier decide on the result that a task holds, and then calls `apply`, which moves the task on in a transaction of
   * its own.
   *
   * @param reviewer the principal that decides
   * @throws DeputeError TASK_STATE_CONFLICT (nothing is held), REVIEW_CLOSED, CALLER_NOT_ALLOWED, CONFLICT_OF_INTEREST,
   * DEPENDENCY_UNAVAILABLE, and what `apply` throws
   */
  decide<T>(
    taskId: string,
    { verdict, comment }: Decision,
    reviewer: string,
    options: CallOptions,
    apply: () => Promise<T>,
  ): Promise<T> {
    const { reviews } = this.#options;
    const reason = shortened(comment);
    return this.alone(taskId, async () => {
      await this.#ask(taskId, options, (id) =>
        reviews.decideReview({ id, verdict, reason, reviewer }, options),
      );
      return apply();
    });
  }

  /**
   * Puts a question about the result that a task holds, and then calls `apply` with its number, to keep it with
   * {@link noteInquiry}.
   *
   * @throws DeputeError as {@link decide}
   */
  inquire<T>(
    taskId: string,
    { requestId, text, reviewer }: { requestId: string; text: string; reviewer: string },
    options: CallOptions,
    apply: (number: number) => Promise<T>,
  ): Promise<T> {
    const { reviews } = this.#options;
    const question = { requestId, text: shortened(text), reviewer };
    return this.alone(taskId, async () => {
      const { inquiry } = await this.#ask(taskId, options, (id) =>
        reviews.inquireReview({ id, ...question }, options),
      );
      return apply(inquiry?.number ?? 0);
    });
  }

  /** Notes that the caller tells the author of a question itself. */
  async noteInquiry(tx: WriteTx, taskId: string, number: number): Promise<void> {
    const review = await reviewOfTask(tx, taskId);
    if (review !== undefined) await noteInquiry(tx, review.reviewId, number);
  }

  /** Owes the verifier what the author answered to the questions so far. */
  async noteAnswer(tx: WriteTx, taskId: string, text: string, answeredBy: string): Promise<void> {
    const review = await reviewOfTask(tx, taskId);
    if (review === undefined) return;
    const { reviewId } = review;
    const answer = shortened(text);
    for (const number of await answerInquiries(tx, reviewId)) {
      await this.#owe(tx, { method: "answer", reviewId, taskId, number, answer, answeredBy });
    }
  }

  /** Ends the review of a held result, before the decision moves the task on. */
  async deciding(tx: WriteTx, record: TaskRecord, decision: Decision, isOwn: boolean): Promise<void> {
    const review = await reviewOfTask(tx, record.task.id);
    if (review !== undefined) await deleteReview(tx, review.reviewId);
    for (const listener of this.#listeners) await listener.deciding(tx, record, decision, isOwn);
  }

  /** Asks for a review; repeating it gives the same one. A result that is held no more needs none. */
  async create(reviewId: string, options: CallOptions): Promise<void> {
    const { engine, reviews, escalation } = this.#options;
    const request = await engine.store.read(async (tx) => {
      const review = await readReview(tx, reviewId);
      const record = review && (await engine.find(tx, review.taskId));
      if (review === undefined || record === undefined) return undefined;
      const result = await engine.heldResult(tx, review.taskId);
      return requestOf(review, record, result?.output?.full, escalation);
    });
    if (request !== undefined) await reviews.createReview(request, options);
  }

  /** Fails the task whose review the verifier will never have. */
  async giveUp(reviewId: string, why: string): Promise<void> {
    const { engine } = this.#options;
    await engine.store.write(async (tx) => {
      const review = await readReview(tx, reviewId);
      if (review !== undefined) await engine.decide(tx, review.taskId, undecided(why), false);
    });
  }

  /**
   * Applies a change of a review: new questions, its escalation, its end.
   *
   * @param within what is written in the same transaction
   */
  async apply(changed: Review, within: (tx: WriteTx) => Promise<void>): Promise<void> {
    // A call that is answered here applies the decision itself, and tells of it.
    await this.#settled(changed.subject);
    const { engine } = this.#options;
    await engine.store.write(async (tx) => {
      await within(tx);
      const review = await readReview(tx, changed.id);
      if (review === undefined) return;
      const record = await engine.find(tx, review.taskId);
      if (record === undefined) return;
      for (const { number, text } of changed.inquiries) {
        if (!(await noteInquiry(tx, review.reviewId, number))) continue;
        for (const listener of this.#listeners) await listener.inquired(tx, record, text);
      }
      if (changed.escalated && changed.state === ReviewState.PENDING && review.escalated === 0) {
        await noteEscalated(tx, review.reviewId);
        for (const listener of this.#listeners) await listener.escalating(tx, record);
      }
      const decision = decisionOf(changed);
      if (decision !== undefined) await engine.decide(tx, review.taskId, decision, false);
    });
  }

  /** Runs calls about one task one after the other. {@link apply} waits for them. */
  async alone<T>(taskId: string, work: () => Promise<T>): Promise<T> {
    const calling = this.#settled(taskId).then(work);
    this.#calling.set(taskId, calling);
    try {
      return await calling;
    } finally {
      if (this.#calling.get(taskId) === calling) this.#calling.delete(taskId);
    }
  }

  async #settled(taskId: string): Promise<void> {
    await this.#calling.get(taskId)?.catch(() => {});
  }

  async #owe(
    tx: WriteTx,
    call: Pick<ReviewCall, "method" | "reviewId" | "taskId"> & Partial<ReviewCall>,
  ): Promise<void> {
    await insertCall(tx, call);
    tx.afterCommit(() => this.#onOwed());
  }

  /** Calls the verifier about the review of a held result, which it may not have yet. */
  async #ask<T>(taskId: string, options: CallOptions, call: (reviewId: string) => Promise<T>): Promise<T> {
    const review = await this.#options.engine.store.read((tx) => reviewOfTask(tx, taskId));
    if (review === undefined) throw await this.#notHeld(taskId);
    try {
      return await call(review.reviewId);
    } catch (thrown) {
      if (reasonOf(thrown) !== ErrorReason.REVIEW_NOT_FOUND) throw thrown;
      await this.create(review.reviewId, options);
      return call(review.reviewId);
    }
  }

  /** How long the verifier waits: no longer than the task. */
  #timeoutMs({ task }: TaskRecord): number {
    const { timeoutMs, clock } = this.#options;
    if (task.expireTime === undefined) return timeoutMs;
    const restMs = fromTimestamp(task.expireTime) - clock.now();
    return Math.max(MIN_TIMEOUT_MS, Math.min(timeoutMs, restMs));
  }

  async #notHeld(taskId: string): Promise<DeputeError> {
    const { engine } = this.#options;
    const record = await engine.store.read((tx) => engine.find(tx, taskId));
    const name = statusName(record?.task.status ?? TaskStatus.UNSPECIFIED);
    return new DeputeError(ErrorReason.TASK_STATE_CONFLICT, `the task is ${name}, and holds no result`, {
      metadata: { task: taskId, from: name, to: name },
    });
  }
}
