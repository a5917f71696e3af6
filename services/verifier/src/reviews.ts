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
  noteTimeChange,
  type StoredReview,
  updateReview,
} from "./store/reviews.ts";

/** Wakes those who watch reviews; the key is the review's id. */
export const REVIEW_TOPIC = "reviews";

/** What is wanted of a new review. Times are milliseconds since the Unix epoch. */
export interface WantedReview extends Omit<Review, "id" | "createTime" | "deadline" | "escalationTime"> {
  /** A UUID of the creator's choice; a new one when absent. */
  id?: string | undefined;
  requestId: string;
  /** How long there is for a decision, in milliseconds. */
  timeoutMs: number;
  /** When others join, in milliseconds from now; half of the time there is when absent. */
  escalateAfterMs?: number | undefined;
  /** JSON of what is reviewed. */
  content: string | undefined;
}

/** The one queue of what waits for a decision. */
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

  /** Tells the listener when time will change a review, epoch milliseconds. */
  onDue(listener: (atMs: number) => void): void {
    this.#onDue = listener;
  }

  /** When time changes a review next, epoch milliseconds. */
  earliestDue(): Promise<number | undefined> {
    return this.#store.read(earliestDue);
  }

  /**
   * Records the escalations and time-outs that have come, so that watchers hear of each.
   *
   * @returns whether there may be more
   */
  async applyTime(limit: number): Promise<boolean> {
    return this.#store.write(async (tx) => {
      const now = this.#clock.now();
      const due = await dueReviews(tx, now, limit);
      for (const review of due) {
        await noteTimeChange(tx, review, now);
        tx.afterCommit(() => this.#bus.publish(REVIEW_TOPIC, review.id));
      }
      return due.length === limit;
    });
  }

  /**
   * Puts a review into the queue; the one that is there already for the same request.
   *
   * @throws DeputeError REQUEST_ID_REUSED, CONFLICT_OF_INTEREST, INVALID_REQUEST
   */
  async create(wanted: WantedReview): Promise<StoredReview> {
    const now = this.#clock.now();
    const { id = newId(), timeoutMs, escalateAfterMs = Math.floor(timeoutMs / 2), content, ...rest } = wanted;
    const digest = this.#digest(wanted);
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
      const known = await getRequestedReview(tx, wanted.creator, wanted.requestId);
      if (known !== undefined && known.digest !== digest) throw requestIdReused(wanted.requestId);
      if (known !== undefined) return known;
      if (wanted.id !== undefined && (await getReview(tx, id)) !== undefined) throw requestIdReused(id);
      await insertReview(tx, review, content);
      tx.afterCommit(() => {
        this.#bus.publish(REVIEW_TOPIC, review.id);
        this.#onDue(review.escalationTime);
      });
      return review;
    });
  }

  /**
   * Decides a review that this reader may know of.
   *
   * @throws DeputeError REVIEW_NOT_FOUND and those of `decide`
   */
  decide(id: string, decision: Decision): Promise<Review> {
    return this.#change(id, decision.reviewer, (review, now) => decide(review, decision, now));
  }

  /** @throws DeputeError REVIEW_NOT_FOUND, CALLER_NOT_ALLOWED, REVIEW_CLOSED */
  withdraw(id: string, by: string, reason: string): Promise<Review> {
    return this.#change(id, by, (review, now) => {
      if (review.creator === by) return withdraw(review, by, reason, now);
      throw new DeputeError(ErrorReason.CALLER_NOT_ALLOWED, "only who created a review takes it back");
    });
  }

  /**
   * Asks about a review that this reader may know of; gives the question that came with the same request before.
   *
   * @throws DeputeError REVIEW_NOT_FOUND, REQUEST_ID_REUSED and those of `inquire`
   */
  inquire(id: string, question: { requestId: string; reviewer: string; text: string }): Promise<Inquiry> {
    return this.#store.write(async (tx) => {
      const now = this.#clock.now();
      const review = await this.#known(tx, id, question.reviewer, now);
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

  /** @throws DeputeError REVIEW_NOT_FOUND, CALLER_NOT_ALLOWED, INQUIRY_NOT_FOUND and those of `answerInquiry` */
  answer(
    id: string,
    number: number,
    by: string,
    given: { answer: string; answeredBy: string },
  ): Promise<Inquiry> {
    return this.#store.write(async (tx) => {
      const now = this.#clock.now();
      const review = await this.#known(tx, id, by, now);
      if (review.creator !== by) {
        throw new DeputeError(ErrorReason.CALLER_NOT_ALLOWED, "only who created a review answers for it");
      }
      const inquiry = (await listInquiries(tx, id)).find((each) => each.number === number);
      if (inquiry === undefined) {
        throw new DeputeError(ErrorReason.INQUIRY_NOT_FOUND, "no such inquiry", {
          metadata: { review: id, inquiry: String(number) },
        });
      }
      const answered = answerInquiry(review, inquiry, given, now);
      if (answered === inquiry) return inquiry;
      await updateInquiry(tx, id, answered);
      await this.#changed(tx, id);
      return answered;
    });
  }

  #change(id: string, by: string, change: (review: Review, now: number) => Review): Promise<Review> {
    return this.#store.write(async (tx) => {
      const now = this.#clock.now();
      const review = await this.#known(tx, id, by, now);
      const changed = change(review, now);
      if (changed === review) return review;
      await updateReview(tx, changed);
      tx.afterCommit(() => this.#bus.publish(REVIEW_TOPIC, id));
      return changed;
    });
  }

  async #known(tx: WriteTx, id: string, by: string, now: number): Promise<Review> {
    const review = await getReview(tx, id);
    // Somebody's own work is told from a review that is not there: its author learns that he may not.
    if (review !== undefined && (mayRead(review, by, now) || review.author === by)) return review;
    throw reviewNotFound(id);
  }

  async #changed(tx: WriteTx, id: string): Promise<void> {
    await appendChange(tx, id);
    tx.afterCommit(() => this.#bus.publish(REVIEW_TOPIC, id));
  }

  #digest({ creator: _, requestId: __, ...body }: WantedReview): string {
    const plain = JSON.parse(JSON.stringify(body)) as unknown;
    return encodeBase64Url(this.#engine.blake2b256(canonicalBytes(plain)));
  }
}

export function reviewNotFound(id: string): DeputeError {
  return new DeputeError(ErrorReason.REVIEW_NOT_FOUND, "no such review", { metadata: { review: id } });
}
