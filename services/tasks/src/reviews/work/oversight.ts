import type { CallOptions, Client } from "@connectrpc/connect";
import { TaskStatus } from "@depute/contracts/depute/tasks/v1/task_pb";
import {
  type Review,
  type ReviewService,
  ReviewState,
} from "@depute/contracts/depute/verifier/v1/review_service_pb";
import { type Clock, DeputeError, ErrorReason, fromTimestamp, newId, type Timers } from "@depute/core";
import { optionsForOwner, reasonOf } from "@depute/service";
import type { ReadTx, WriteTx } from "@depute/store";
import {
  type Decision,
  type ResultReviews,
  type ReviewListener,
  statusName,
  type TaskChange,
  type TaskEngine,
  type TaskEventName,
  type TaskRecord,
} from "../../core/index.ts";
import { insertCall, type ReviewCall } from "../store/call-rows.ts";
import {
  answerInquiries,
  callingUntil,
  deleteReview,
  insertReview,
  noteCalling,
  noteEscalated,
  noteInquiry,
  readReview,
  reviewOfTask,
} from "../store/review-rows.ts";
import { decisionOf, undecided } from "./decision.ts";
import { requestOf, shortened } from "./request.ts";

/** Maximum milliseconds for which a replica waits for another replica's call about the same task. */
const CALL_LIMIT_MS = 15_000;
/** Milliseconds between two checks for calls of other replicas. */
const CHECK_MS = 50;
/** The shortest timeout of a review, in milliseconds. */
const MIN_TIMEOUT_MS = 1000;

export interface OversightOptions {
  readonly engine: TaskEngine;
  readonly clock: Clock;
  readonly timers: Timers;
  /** Whether other replicas call the verifier about the same reviews. */
  readonly isShared: boolean;
  readonly reviews: Client<typeof ReviewService>;
  /** Milliseconds for which the verifier waits for a decision. */
  readonly timeoutMs: number;
  /** Principals that may also decide after half of the timeout. */
  readonly escalation: readonly string[];
}

/** The events that {@link Oversight} follows: the events with which a task enters or leaves review. */
export const FOLLOWED: ReadonlySet<TaskEventName> = new Set([
  "submitted",
  "changesRequested",
  "completed",
  "failed",
  "cancelled",
  "expired",
  "revoked",
]);

/**
 * Connects a held result to its review at the verifier service. That service measures the time of the review, and
 * records its questions and its decision. The transaction that holds the result also writes the request for the review
 * to an outbox. The end of the review changes the task exactly once.
 */
export class Oversight implements ResultReviews {
  readonly #options: OversightOptions;
  readonly #listeners: ReviewListener[] = [];
  /** Calls to the verifier that are in progress, by task id. */
  readonly #calling = new Map<string, Promise<unknown>>();
  #onOwed: () => void = () => {};

  constructor(options: OversightOptions) {
    this.#options = options;
  }

  listen(listener: ReviewListener): void {
    this.#listeners.push(listener);
  }

  /** Registers the listener for new pending calls to the verifier. */
  onOwed(listener: () => void): void {
    this.#onOwed = listener;
  }

  /**
   * Observes tasks. Requests a review when a task gets a held result. Withdraws the review when the task leaves review
   * without a decision.
   */
  async observe(tx: WriteTx, { before, after, events }: TaskChange): Promise<void> {
    const { id: taskId, status } = after.task;
    if (status === TaskStatus.IN_REVIEW) {
      if (!events.some(({ payload }) => payload.case === "submitted")) return;
      const reviewId = newId(this.#options.clock.now());
      await insertReview(tx, { reviewId, taskId, timeoutMs: this.#timeoutMs(after) });
      await this.#owe(tx, { method: "create", reviewId, taskId });
    } else if (before?.task.status === TaskStatus.IN_REVIEW) {
      // A missing row means that a decision ended the review: `deciding` deletes the row before the task changes.
      const review = await reviewOfTask(tx, taskId);
      if (review === undefined) return;
      await deleteReview(tx, review.reviewId);
      await this.#owe(tx, { method: "withdraw", reviewId: review.reviewId, taskId });
    }
  }

  /** Whether principals other than the overseer may now decide on a task's held result. */
  async isEscalated(tx: ReadTx, taskId: string): Promise<boolean> {
    return (await reviewOfTask(tx, taskId))?.escalated === 1;
  }

  /**
   * Records the decision on a held result at the verifier service. Then calls `apply`, which changes the task in a
   * separate transaction.
   *
   * @param reviewer the principal that decides
   * @throws DeputeError TASK_STATE_CONFLICT (no result is held), REVIEW_CLOSED, CALLER_NOT_ALLOWED,
   * CONFLICT_OF_INTEREST, DEPENDENCY_UNAVAILABLE, and the errors of `apply`
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
    return this.#calls(taskId, async () => {
      await this.#ask(taskId, options, (id) =>
        reviews.decideReview({ reviewId: id, verdict, reason, reviewer }, options),
      );
      return apply();
    });
  }

  /**
   * Sends a question about a held result to the verifier. Then calls `apply` with the question's number. The module
   * that asks records this number with {@link noteInquiry}.
   *
   * @throws DeputeError TASK_STATE_CONFLICT (no result is held), REVIEW_CLOSED, CALLER_NOT_ALLOWED, REQUEST_ID_REUSED,
   * LIMIT_EXCEEDED, DEPENDENCY_UNAVAILABLE, and the errors of `apply`
   */
  inquire<T>(
    taskId: string,
    { requestId, text, reviewer }: { requestId: string; text: string; reviewer: string },
    options: CallOptions,
    apply: (number: number) => Promise<T>,
  ): Promise<T> {
    const { reviews } = this.#options;
    const question = { requestId, text: shortened(text), reviewer };
    return this.#calls(taskId, async () => {
      const { inquiry } = await this.#ask(taskId, options, (id) =>
        reviews.inquireReview({ reviewId: id, ...question }, options),
      );
      return apply(inquiry?.number ?? 0);
    });
  }

  /** Records that the calling module delivers a question to the result's author. */
  async noteInquiry(tx: WriteTx, taskId: string, number: number): Promise<void> {
    const review = await reviewOfTask(tx, taskId);
    if (review !== undefined) await noteInquiry(tx, review.reviewId, number);
  }

  /** Puts the author's answer to the open questions into the outbox of calls to the verifier. */
  async noteAnswer(tx: WriteTx, taskId: string, text: string, answeredBy: string): Promise<void> {
    const review = await reviewOfTask(tx, taskId);
    if (review === undefined) return;
    const { reviewId } = review;
    const answer = shortened(text);
    for (const number of await answerInquiries(tx, reviewId)) {
      await this.#owe(tx, { method: "answer", reviewId, taskId, number, answer, answeredBy });
    }
  }

  /** Ends the review of a held result before the decision changes the task, and runs the listeners. */
  async deciding(tx: WriteTx, record: TaskRecord, decision: Decision, isOwn: boolean): Promise<void> {
    const review = await reviewOfTask(tx, record.task.id);
    if (review !== undefined) await deleteReview(tx, review.reviewId);
    for (const listener of this.#listeners) await listener.deciding(tx, record, decision, isOwn);
  }

  /**
   * Requests a review at the verifier service. A repeated request returns the same review. Does nothing if the result
   * is no longer held.
   */
  async create(reviewId: string, options: CallOptions): Promise<void> {
    const { engine, reviews, escalation } = this.#options;
    const request = await engine.store.read(async (tx) => {
      const review = await readReview(tx, reviewId);
      const record = review && (await engine.find(tx, review.taskId));
      if (review === undefined || record === undefined) return undefined;
      const result = await engine.heldResult(tx, review.taskId);
      return { ...requestOf(review, record, result?.output?.full, escalation), task: record.task };
    });
    if (request === undefined) return;
    const { task, ...asked } = request;
    await reviews.createReview(asked, optionsForOwner(options, task));
  }

  /** Fails a task in review, because the verifier service has refused the review, and a retry cannot succeed. */
  async giveUp(reviewId: string, why: string): Promise<void> {
    const { engine } = this.#options;
    await engine.store.write(async (tx) => {
      const review = await readReview(tx, reviewId);
      if (review !== undefined) await engine.decide(tx, review.taskId, undecided(why), false);
    });
  }

  /**
   * Applies a change of a review: new questions, the escalation, or the end.
   *
   * @param within a function that writes in the same transaction
   */
  async apply(changed: Review, within: (tx: WriteTx) => Promise<void>): Promise<void> {
    // Waits for calls in progress about this task, because such a call applies its own decision.
    await this.#settled(changed.subject);
    await this.#settledElsewhere(changed.subject);
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

  /** Runs the calls about one task one at a time. {@link apply} waits for them. */
  async alone<T>(taskId: string, work: () => Promise<T>): Promise<T> {
    const calling = this.#settled(taskId).then(work);
    this.#calling.set(taskId, calling);
    try {
      return await calling;
    } finally {
      if (this.#calling.get(taskId) === calling) this.#calling.delete(taskId);
    }
  }

  /**
   * Runs a call that may change a task. The replica that follows the reviews waits for the end of this call. So that
   * replica does not apply the decision first.
   */
  async #calls<T>(taskId: string, work: () => Promise<T>): Promise<T> {
    const { engine, clock, isShared } = this.#options;
    if (!isShared) return this.alone(taskId, work);
    const note = (untilMs: number) => engine.store.write((tx) => noteCalling(tx, taskId, untilMs));
    await note(clock.now() + CALL_LIMIT_MS);
    try {
      return await this.alone(taskId, work);
    } finally {
      await note(0).catch(() => {});
    }
  }

  /** Waits for the calls of other replicas about a task. */
  async #settledElsewhere(taskId: string): Promise<void> {
    const { engine, clock, timers, isShared } = this.#options;
    while (isShared && (await engine.store.read((tx) => callingUntil(tx, taskId))) > clock.now()) {
      await new Promise<void>((resolve) => void timers.after(CHECK_MS, resolve));
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

  /**
   * Calls the verifier service about the review of a held result. If the verifier does not have the review yet, creates
   * the review first.
   */
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

  /** Returns the milliseconds for which the verifier waits for a decision: at most until the task's deadline. */
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
    return new DeputeError(ErrorReason.TASK_STATE_CONFLICT, `the task is ${name}, and has no held result`, {
      metadata: { task: taskId, from: name, to: name },
    });
  }
}
