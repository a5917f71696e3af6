import type { Value } from "@bufbuild/protobuf/wkt";
import type { CallOptions, Client } from "@connectrpc/connect";
import { TaskStatus } from "@depute/contracts/depute/tasks/v1/task_pb";
import {
  type Review,
  type ReviewInquiry,
  ReviewKind,
  type ReviewService,
  ReviewState,
  ReviewVerdict,
} from "@depute/contracts/depute/verifier/v1/review_service_pb";
import { type Clock, DeputeError, ErrorReason, fromTimestamp } from "@depute/core";
import { LOCAL_PRINCIPAL } from "@depute/service";
import type { ReadTx, WriteTx } from "@depute/store";
import {
  checkValue,
  type Decision,
  MAX_VALUE_BYTES,
  REVIEW_REJECTED,
  REVIEW_TIMED_OUT,
  type ResultReviews,
  type ReviewListener,
  statusName,
  type TaskChange,
  type TaskEngine,
  type TaskRecord,
} from "../core/index.ts";
import { answerInquiries, insertInquiry } from "./inquiry-rows.ts";
import {
  closeReview,
  escalatingReviews,
  insertReview,
  noteCreated,
  noteEscalated,
  openReview,
  overdueReviews,
  type ReviewRow,
  readReview,
} from "./rows.ts";

/** What a queue is told of what it shows, bytes as JSON; larger results are named and read with GetTask. */
const MAX_CONTENT_BYTES = MAX_VALUE_BYTES / 4;

/** Characters that the queue takes of a reason, a question or an answer. */
const MAX_WORDS = 4000;

/** Reviews that are looked at in one pass of time. */
const BATCH = 50;

const CLOSED: ReadonlySet<ReviewState> = new Set([
  ReviewState.APPROVED,
  ReviewState.CHANGES_REQUESTED,
  ReviewState.REJECTED,
]);

const VERDICTS: Partial<Record<ReviewState, ReviewVerdict>> = {
  [ReviewState.APPROVED]: ReviewVerdict.APPROVED,
  [ReviewState.CHANGES_REQUESTED]: ReviewVerdict.CHANGES_REQUESTED,
  [ReviewState.REJECTED]: ReviewVerdict.REJECTED,
};

/** The decision of a review whose time has passed. */
const TIMED_OUT: Decision = {
  verdict: ReviewVerdict.UNSPECIFIED,
  comment: "nobody decided on the result in time",
};

export interface OversightOptions {
  readonly engine: TaskEngine;
  readonly clock: Clock;
  readonly reviews: Client<typeof ReviewService>;
  /** How long there is for a decision, milliseconds. */
  readonly timeoutMs: number;
  /** Principals that may decide as well when half of that is over. */
  readonly escalation: readonly string[];
}

/**
 * Held results and the queue of reviews, which decides on them. The queue is told in an outbox of the transaction that holds
 * a result; what it decides is applied once, whichever door the decision came by.
 */
export class Oversight implements ResultReviews {
  readonly #options: OversightOptions;
  readonly #listeners: ReviewListener[] = [];
  /** Decisions that are being made here: who follows the queue waits for them. */
  readonly #making = new Map<string, Promise<unknown>>();
  #onTodo: () => void = () => {};
  #onTime: () => void = () => {};

  constructor(options: OversightOptions) {
    this.#options = options;
  }

  listen(listener: ReviewListener): void {
    this.#listeners.push(listener);
  }

  /** Tells the listeners when there is something for the queue, or another time to look at. */
  onWork(todo: () => void, time: () => void): void {
    this.#onTodo = todo;
    this.#onTime = time;
  }

  /** Follows the engine: a result that is held opens a review, and whatever else ends the waiting withdraws it. */
  async observe(tx: WriteTx, { before, after, events }: TaskChange): Promise<void> {
    const wasHeld = before?.task.status === TaskStatus.IN_REVIEW;
    const submitted = events.find(({ payload }) => payload.case === "submitted");
    if (!wasHeld && submitted === undefined) return;
    const { id } = after.task;
    if (wasHeld && after.task.status !== TaskStatus.IN_REVIEW) {
      const review = await openReview(tx, id);
      if (review === undefined) return;
      await closeReview(tx, review, !isDecided(after));
      tx.afterCommit(() => this.#onTodo());
    } else if (submitted !== undefined) {
      const nowMs = this.#options.clock.now();
      const deadlineMs = nowMs + this.#timeMs(after, nowMs);
      const reviewKey = `${id}/${submitted.sequence}`;
      await insertReview(tx, {
        reviewKey,
        taskId: id,
        escalateMs: Math.floor((nowMs + deadlineMs) / 2),
        deadlineMs,
      });
      tx.afterCommit(() => {
        this.#onTodo();
        this.#onTime();
      });
    }
  }

  /** Whether the review of a task has waited so long that others may decide. */
  async isEscalated(tx: ReadTx, taskId: string): Promise<boolean> {
    const review = await openReview(tx, taskId);
    return review !== undefined && review.escalateMs <= this.#options.clock.now();
  }

  /**
   * Decides on the result that a task holds: by the queue, and then by `apply`, which moves the task on in a transaction of
   * its own.
   *
   * @param reviewer the principal that decides
   * @throws DeputeError TASK_STATE_CONFLICT (nothing is held), REVIEW_CLOSED, CALLER_NOT_ALLOWED, CONFLICT_OF_INTEREST,
   * DEPENDENCY_UNAVAILABLE, and what `apply` throws
   */
  async decide<T>(
    taskId: string,
    { verdict, comment }: Decision,
    reviewer: string,
    options: CallOptions,
    apply: () => Promise<T>,
  ): Promise<T> {
    return this.#alone(taskId, async () => {
      const review = await this.#options.engine.store.read((tx) => openReview(tx, taskId));
      if (review === undefined) throw await this.#notHeld(taskId);
      const id = await this.create(review, options);
      await this.#options.reviews.decideReview(
        { id, verdict, reason: shortened(comment), reviewer },
        options,
      );
      return apply();
    });
  }

  /**
   * Puts a question to the author of the result that a task holds: to the queue, and then by `apply`, which is given its
   * number to keep it with {@link noteInquiry}.
   *
   * @throws DeputeError as {@link decide}
   */
  async inquire<T>(
    taskId: string,
    { requestId, text, reviewer }: { requestId: string; text: string; reviewer: string },
    options: CallOptions,
    apply: (number: number) => Promise<T>,
  ): Promise<T> {
    return this.#alone(taskId, async () => {
      const review = await this.#options.engine.store.read((tx) => openReview(tx, taskId));
      if (review === undefined) throw await this.#notHeld(taskId);
      const id = await this.create(review, options);
      const asked = { id, requestId, text: shortened(text), reviewer };
      const { inquiry } = await this.#options.reviews.inquireReview(asked, options);
      return apply(inquiry?.number ?? 0);
    });
  }

  /** Keeps a question that `inquire` has put. */
  async noteInquiry(tx: WriteTx, taskId: string, number: number): Promise<void> {
    const review = await openReview(tx, taskId);
    if (review !== undefined) await insertInquiry(tx, review, number);
  }

  /** Keeps what the author answered, for the queue. */
  async noteAnswer(tx: WriteTx, taskId: string, text: string, answeredBy: string): Promise<void> {
    const review = await openReview(tx, taskId);
    if (review === undefined) return;
    const answered = await answerInquiries(tx, review.reviewKey, shortened(text), answeredBy);
    if (answered > 0) tx.afterCommit(() => this.#onTodo());
  }

  /** Resolves when nothing is being decided here about a task. */
  async settled(taskId: string): Promise<void> {
    await this.#making.get(taskId)?.catch(() => {});
  }

  async deciding(tx: WriteTx, record: TaskRecord, decision: Decision, isOwn: boolean): Promise<void> {
    for (const listener of this.#listeners) await listener.deciding(tx, record, decision, isOwn);
  }

  /** Puts a review into the queue; repeating it gives the same one. */
  async create(row: ReviewRow, options: CallOptions): Promise<string> {
    const { reviewKey, reviewId, taskId } = row;
    if (reviewId !== "") return reviewId;
    const { engine, reviews, escalation } = this.#options;
    const held = await engine.store.read(async (tx) => {
      const record = await engine.find(tx, taskId);
      const result = await engine.heldResult(tx, taskId);
      return record === undefined ? undefined : { record, content: result?.output?.full };
    });
    if (held === undefined) return "";
    const { record, content } = held;
    const reviewers = [record.overseerPrincipal || LOCAL_PRINCIPAL];
    const author = reviewers.includes(record.agentPrincipal) ? "" : record.agentPrincipal;
    // Until the queue has told its own times, half of the time there is lies between these two.
    const timeoutMs = 2 * (row.deadlineMs - row.escalateMs);
    const { review } = await reviews.createReview(
      {
        requestId: reviewKey,
        kind: ReviewKind.OVERSIGHT,
        subject: taskId,
        title: `the result of ${record.task.agentId}`,
        contentReference: { uri: referenceOf(reviewKey), mediaType: "application/json" },
        author,
        reviewers,
        escalationReviewers: escalation.filter((one) => one !== author && !reviewers.includes(one)),
        timeoutSeconds: BigInt(Math.max(1, Math.ceil(timeoutMs / 1000))),
        ...(content !== undefined && isSmall(content) ? { content } : {}),
      },
      options,
    );
    if (review === undefined) throw new Error("the queue answered without its review");
    await engine.store.write(async (tx) => {
      await noteCreated(tx, reviewKey, timesOf(review));
      const row = await readReview(tx, reviewKey);
      // Its task ended while the queue was told.
      if (row !== undefined && !row.isOpen && !CLOSED.has(review.state)) await closeReview(tx, row, true);
    });
    this.#onTime();
    if (CLOSED.has(review.state)) await this.#apply(review);
    return review.id;
  }

  /** Applies what the queue decided, if it was not applied. */
  async applyDecided(review: Review, within?: (tx: WriteTx) => Promise<void>): Promise<void> {
    // Decided by a call that is answered here: it applies it, and tells of it.
    await this.settled(review.subject);
    await this.#apply(review, within);
  }

  async #apply(review: Review, within?: (tx: WriteTx) => Promise<void>): Promise<void> {
    const verdict = VERDICTS[review.state];
    const { engine } = this.#options;
    await engine.store.write(async (tx) => {
      await within?.(tx);
      const row = await openReview(tx, review.subject);
      // An earlier result of the same task is another review's.
      if (row === undefined || review.contentReference?.uri !== referenceOf(row.reviewKey)) return;
      for (const inquiry of review.inquiries) await this.#tellInquiry(tx, row, inquiry);
      if (verdict === undefined) return;
      const decision = { verdict, comment: review.reason };
      await engine.decide(tx, row.taskId, decision, false);
    });
  }

  /**
   * Does what time asks for: tells of reviews that escalate, and fails tasks on whose results nobody decided. The queue has
   * the last word on whether somebody did.
   */
  async applyTime(options: CallOptions): Promise<void> {
    const { engine, reviews, clock } = this.#options;
    await engine.store.write(async (tx) => {
      for (const { reviewKey, taskId } of await escalatingReviews(tx, clock.now(), BATCH)) {
        const record = await engine.find(tx, taskId);
        await noteEscalated(tx, reviewKey);
        if (record === undefined) continue;
        for (const listener of this.#listeners) await listener.escalating(tx, record);
      }
    });
    const overdue = await engine.store.read((tx) => overdueReviews(tx, clock.now(), BATCH));
    for (const row of overdue) {
      const id = await this.create(row, options);
      const { review } = await reviews.getReview({ id }, options);
      if (review === undefined || review.state === ReviewState.PENDING) continue;
      if (CLOSED.has(review.state)) {
        await this.applyDecided(review);
        continue;
      }
      await engine.store.write((tx) => engine.decide(tx, row.taskId, TIMED_OUT, false));
    }
  }

  /** Whoever follows the queue waits until this is done, and one about a task waits for the one before. */
  async #alone<T>(taskId: string, work: () => Promise<T>): Promise<T> {
    const making = this.settled(taskId).then(work);
    this.#making.set(taskId, making);
    try {
      return await making;
    } finally {
      if (this.#making.get(taskId) === making) this.#making.delete(taskId);
    }
  }

  /** How long there is for a decision: no longer than the task. */
  #timeMs({ task }: TaskRecord, nowMs: number): number {
    const { timeoutMs } = this.#options;
    if (task.expireTime === undefined) return timeoutMs;
    return Math.max(1000, Math.min(timeoutMs, fromTimestamp(task.expireTime) - nowMs));
  }

  /** Tells of a question that came by the queue. */
  async #tellInquiry(tx: WriteTx, row: ReviewRow, { number, text }: ReviewInquiry): Promise<void> {
    if (!(await insertInquiry(tx, row, number))) return;
    const record = await this.#options.engine.find(tx, row.taskId);
    if (record === undefined) return;
    for (const listener of this.#listeners) await listener.inquired(tx, record, text);
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

/** Words as the queue takes them: some, and not too many. */
function shortened(text: string): string {
  const words = text.trim() === "" ? "(nothing was said)" : text;
  return Array.from(words).slice(0, MAX_WORDS).join("");
}

/** Names the result that a review is about. */
function referenceOf(reviewKey: string): string {
  return `depute:tasks/${reviewKey}`;
}

function timesOf({ id, createTime, escalationTime, deadlineTime }: Review) {
  const createMs = createTime === undefined ? 0 : fromTimestamp(createTime);
  const deadlineMs = deadlineTime === undefined ? createMs : fromTimestamp(deadlineTime);
  const escalateMs =
    escalationTime === undefined ? (createMs + deadlineMs) / 2 : fromTimestamp(escalationTime);
  return { reviewId: id, escalateMs: Math.floor(escalateMs), deadlineMs };
}

/** Whether a task left its review by a decision, or because there was none in time. */
function isDecided({ task: { status, failure } }: TaskRecord): boolean {
  if (status === TaskStatus.FAILED) {
    return failure?.reason === REVIEW_REJECTED || failure?.reason === REVIEW_TIMED_OUT;
  }
  return status === TaskStatus.COMPLETED || status === TaskStatus.PENDING;
}

function isSmall(content: Value): boolean {
  try {
    checkValue(content, "content", MAX_CONTENT_BYTES);
    return true;
  } catch {
    return false;
  }
}
