import type { Bus } from "@depute/bus";
import {
  type Clock,
  canonicalBytes,
  DeputeError,
  ErrorReason,
  encodeBase64Url,
  newId,
  requestIdReused,
} from "@depute/core";
import type { CryptoEngine } from "@depute/dct";
import type { Store, WriteTx } from "@depute/store";
import {
  answerInquiry,
  type Decision,
  decide,
  type Inquiry,
  inquire,
  mayRead,
  type Reader,
  type Review,
  validateReview,
  withdraw,
} from "./rules/review.ts";
import { insertInquiry, listInquiries, updateInquiry } from "./store/inquiries.ts";
import {
  appendChange,
  dueReviews,
  earliestDue,
  getRequestedReview,
  getReview,
  insertReview,
  recordTimeChange,
  type StoredReview,
  updateReview,
} from "./store/reviews.ts";

/** The bus topic that wakes the watchers of reviews. The key is the review's id. */
export const REVIEW_TOPIC = "reviews";

/** The fields of a new review. Times are epoch milliseconds. */
export interface NewReview extends Omit<Review, "id" | "createTime" | "deadline" | "escalationTime"> {
  /** The review's id, a UUID that the creator chooses; if absent, the service chooses one. */
  id?: string | undefined;
  requestId: string;
  /** Time within which a reviewer must decide, in milliseconds. */
  timeoutMs: number;
  /** Time after which the escalation reviewers may decide, in milliseconds; if absent, half of the timeout. */
  escalateAfterMs?: number | undefined;
  /** JSON of the content under review. */
  content: string | undefined;
}

/** The queue of reviews. */
export class Reviews {
  readonly #store: Store;
  readonly #bus: Bus;
  readonly #clock: Clock;
  readonly #engine: CryptoEngine;
  #onDue: (atMs: number) => void = () => {};

  constructor(store: Store, bus: Bus, clock: Clock, engine: CryptoEngine) {
    this.#store = store;
    this.#bus = bus;
    this.#clock = clock;
    this.#engine = engine;
  }

  /**
   * Sets the listener for escalations and time-outs. The listener receives the time, in epoch milliseconds, at which a
   * review will escalate or time out.
   */
  onDue(listener: (atMs: number) => void): void {
    this.#onDue = listener;
  }

  /**
   * Returns the time of the next escalation or time-out of any review, in epoch milliseconds; undefined if there is
   * none.
   */
  earliestDue(): Promise<number | undefined> {
    return this.#store.read(earliestDue);
  }

  /**
   * Records the escalations and time-outs whose time has come, so that watchers get each change.
   *
   * @returns true if more may be due
   */
  async applyTime(limit: number): Promise<boolean> {
    return this.#store.write(async (tx) => {
      const now = this.#clock.now();
      const due = await dueReviews(tx, now, limit);
      for (const review of due) {
        await recordTimeChange(tx, review, now);
        tx.afterCommit(() => this.#bus.publish(REVIEW_TOPIC, review.id));
      }
      return due.length === limit;
    });
  }

  /**
   * Creates a review. A replay returns the review that the first call created.
   *
   * @throws DeputeError REQUEST_ID_REUSED, CONFLICT_OF_INTEREST, INVALID_REQUEST
   */
  async create(newReview: NewReview): Promise<StoredReview> {
    const now = this.#clock.now();
    const {
      id = newId(now),
      timeoutMs,
      escalateAfterMs = Math.floor(timeoutMs / 2),
      content,
      ...rest
    } = newReview;
    const digest = this.#digest(newReview);
    const review: StoredReview = {
      ...rest,
      id,
      digest,
      createTime: now,
      deadline: now + timeoutMs,
      escalationTime: now + escalateAfterMs,
    };
    validateReview(review);
    return this.#store.write(async (tx) => {
      const existing = await getRequestedReview(tx, newReview.creator, newReview.requestId);
      if (existing !== undefined && existing.digest !== digest) throw requestIdReused(newReview.requestId);
      if (existing !== undefined) return existing;
      if (newReview.id !== undefined && (await getReview(tx, id)) !== undefined) throw requestIdReused(id);
      await insertReview(tx, review, content);
      tx.afterCommit(() => {
        this.#bus.publish(REVIEW_TOPIC, review.id);
        this.#onDue(review.escalationTime);
      });
      return review;
    });
  }

  /**
   * Decides a review for a reviewer that may read the review.
   *
   * @throws DeputeError REVIEW_NOT_FOUND and the errors of `decide` in rules/review.ts
   */
  decide(id: string, decision: Decision): Promise<Review> {
    const { reviewer: principal, roles } = decision;
    return this.#change(id, { principal, roles }, (review, now) => decide(review, decision, now));
  }

  /**
   * Withdraws a review, if the caller is its creator.
   *
   * @throws DeputeError REVIEW_NOT_FOUND, CALLER_NOT_ALLOWED, REVIEW_CLOSED
   */
  withdraw(id: string, by: string, reason: string): Promise<Review> {
    return this.#change(id, { principal: by }, (review, now) => {
      if (review.creator === by) return withdraw(review, by, reason, now);
      throw new DeputeError(ErrorReason.CALLER_NOT_ALLOWED, "only the creator of a review may withdraw it");
    });
  }

  /**
   * Asks a question about a review that the reviewer may read. A replay returns the inquiry that the first call
   * created.
   *
   * @throws DeputeError REVIEW_NOT_FOUND, REQUEST_ID_REUSED and the errors of `inquire` in rules/review.ts
   */
  inquire(id: string, question: { requestId: string; reviewer: string; text: string }): Promise<Inquiry> {
    return this.#store.write(async (tx) => {
      const now = this.#clock.now();
      const review = await this.#requireReview(tx, id, { principal: question.reviewer }, now);
      const before = await listInquiries(tx, id);
      const same = before.find(
        ({ requestId, inquirer }) => requestId === question.requestId && inquirer === question.reviewer,
      );
      if (same?.text === question.text) return same;
      if (same !== undefined) throw requestIdReused(question.requestId);
      const inquiry = inquire(review, before.length, question, now);
      await insertInquiry(tx, id, { ...inquiry, requestId: question.requestId });
      await this.#changed(tx, id);
      return inquiry;
    });
  }

  /**
   * Answers a reviewer's inquiry, if the caller is the review's creator.
   *
   * @throws DeputeError REVIEW_NOT_FOUND, CALLER_NOT_ALLOWED, INQUIRY_NOT_FOUND and the errors of `answerInquiry`
   */
  answer(
    id: string,
    number: number,
    by: string,
    inquiryAnswer: { answer: string; answeredBy: string },
  ): Promise<Inquiry> {
    return this.#store.write(async (tx) => {
      const now = this.#clock.now();
      const review = await this.#requireReview(tx, id, { principal: by }, now);
      if (review.creator !== by) {
        throw new DeputeError(
          ErrorReason.CALLER_NOT_ALLOWED,
          "only the creator of a review may answer its inquiries",
        );
      }
      const inquiry = (await listInquiries(tx, id)).find((each) => each.number === number);
      if (inquiry === undefined) {
        throw new DeputeError(ErrorReason.INQUIRY_NOT_FOUND, "the inquiry does not exist; check its number", {
          metadata: { review: id, inquiry: String(number) },
        });
      }
      const answered = answerInquiry(review, inquiry, inquiryAnswer, now);
      if (answered === inquiry) return inquiry;
      await updateInquiry(tx, id, answered);
      await this.#changed(tx, id);
      return answered;
    });
  }

  #change(id: string, by: Reader, change: (review: Review, now: number) => Review): Promise<Review> {
    return this.#store.write(async (tx) => {
      const now = this.#clock.now();
      const review = await this.#requireReview(tx, id, by, now);
      const changed = change(review, now);
      if (changed === review) return review;
      await updateReview(tx, changed);
      tx.afterCommit(() => this.#bus.publish(REVIEW_TOPIC, id));
      return changed;
    });
  }

  async #requireReview(tx: WriteTx, id: string, by: Reader, now: number): Promise<Review> {
    const review = await getReview(tx, id);
    // The author of the work already knows that the review exists, so the error need not hide the review from the
    // author.
    if (review !== undefined && (mayRead(review, by, now) || review.author === by.principal)) return review;
    throw reviewNotFound(id);
  }

  async #changed(tx: WriteTx, id: string): Promise<void> {
    await appendChange(tx, id);
    tx.afterCommit(() => this.#bus.publish(REVIEW_TOPIC, id));
  }

  #digest({ creator: _, requestId: __, organization: ___, ...body }: NewReview): string {
    const plain = JSON.parse(JSON.stringify(body)) as unknown;
    return encodeBase64Url(this.#engine.blake2b256(canonicalBytes(plain)));
  }
}

export function reviewNotFound(id: string): DeputeError {
  return new DeputeError(ErrorReason.REVIEW_NOT_FOUND, "the review does not exist; check the id", {
    metadata: { review: id },
  });
}
