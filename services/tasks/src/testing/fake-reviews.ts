import { create } from "@bufbuild/protobuf";
import { durationMs } from "@bufbuild/protobuf/wkt";
import type { ConnectRouter } from "@connectrpc/connect";
import {
  type Review,
  type ReviewInquiry,
  ReviewInquirySchema,
  ReviewSchema,
  ReviewService,
  ReviewState,
  ReviewVerdict,
} from "@depute/contracts/depute/verifier/v1/review_service_pb";
import { DeputeError, ErrorReason, newId, toTimestamp } from "@depute/core";

const STATES: Partial<Record<ReviewVerdict, ReviewState>> = {
  [ReviewVerdict.APPROVED]: ReviewState.APPROVED,
  [ReviewVerdict.CHANGES_REQUESTED]: ReviewState.CHANGES_REQUESTED,
  [ReviewVerdict.REJECTED]: ReviewState.REJECTED,
};

/** A fake of the verifier's review queue, with the calls that the tasks service makes. */
export class FakeReviews {
  readonly all = new Map<string, Review>();
  /** The error that CreateReview throws; undefined to accept reviews. */
  refuses: DeputeError | undefined;
  readonly #byRequest = new Map<string, Review>();
  readonly #changes: Review[] = [];
  readonly #nowMs: () => number;
  #arrived = () => {};

  constructor(nowMs: () => number) {
    this.#nowMs = nowMs;
  }

  /** Decides a review, like a reviewer that calls the verifier directly. */
  decide(id: string, verdict: ReviewVerdict, reason = ""): Review {
    const review = this.#pending(id);
    return this.#change({ ...review, state: STATES[verdict] ?? ReviewState.PENDING, reason });
  }

  /** Asks a question in a review, like a reviewer that calls the verifier directly. */
  inquire(id: string, text: string, inquirer = ""): ReviewInquiry {
    const review = this.#pending(id);
    const inquiry = create(ReviewInquirySchema, { number: review.inquiries.length + 1, text, inquirer });
    this.#change({ ...review, inquiries: [...review.inquiries, inquiry] });
    return inquiry;
  }

  /** Escalates a review, so that other principals may also decide. */
  escalate(id: string): void {
    this.#change({ ...this.#pending(id), escalated: true });
  }

  /** Ends a review by its timeout. */
  timeOut(id: string): void {
    this.#change({ ...this.#pending(id), escalated: true, state: ReviewState.TIMED_OUT });
  }

  routes(router: ConnectRouter, present: () => void): void {
    router.rpc(ReviewService.method.createReview, (request) => {
      present();
      if (this.refuses !== undefined) throw this.refuses;
      const existing = this.#byRequest.get(request.requestId);
      if (existing !== undefined) return { review: this.all.get(existing.id) ?? existing };
      const { kind, subject, title, author, reviewers, escalationReviewers, content, contentReference } =
        request;
      const nowMs = this.#nowMs();
      const review = create(ReviewSchema, {
        id: request.reviewId || newId(),
        kind,
        state: ReviewState.PENDING,
        subject,
        title,
        author,
        reviewers,
        escalationReviewers,
        createTime: toTimestamp(nowMs),
        deadlineTime: toTimestamp(nowMs + (request.timeout ? durationMs(request.timeout) : 0)),
        ...(content && { content }),
        ...(contentReference && { contentReference }),
      });
      this.#byRequest.set(request.requestId, review);
      return { review: this.#change(review) };
    });
    router.rpc(ReviewService.method.decideReview, ({ reviewId: id, verdict, reason, reviewer }) => {
      present();
      const { reviewers, escalationReviewers } = this.#pending(id);
      if (![...reviewers, ...escalationReviewers].includes(reviewer)) {
        throw new DeputeError(ErrorReason.CALLER_NOT_ALLOWED, "not this reviewer's");
      }
      return { review: this.decide(id, verdict, reason) };
    });
    router.rpc(ReviewService.method.inquireReview, ({ reviewId: id, text, reviewer }) => {
      present();
      return { inquiry: this.inquire(id, text, reviewer) };
    });
    router.rpc(ReviewService.method.answerReviewInquiry, ({ reviewId: id, number, answer, answeredBy }) => {
      present();
      const review = this.#pending(id);
      const inquiries = review.inquiries.map((one) =>
        one.number === number ? { ...one, answer, answeredBy } : one,
      );
      this.#change({ ...review, inquiries });
      return {};
    });
    router.rpc(ReviewService.method.withdrawReview, ({ reviewId: id }) => {
      present();
      return { review: this.#change({ ...this.#pending(id), state: ReviewState.WITHDRAWN }) };
    });
    const reviews = this;
    router.rpc(ReviewService.method.watchReviews, async function* ({ afterSequence }, { signal }) {
      present();
      for (let at = Number(afterSequence); !signal.aborted; ) {
        for (; at < reviews.#changes.length; at++) {
          const review = reviews.#changes[at];
          if (review !== undefined) yield { sequence: BigInt(at + 1), review };
        }
        await new Promise<void>((resolve) => {
          reviews.#arrived = resolve;
          signal.addEventListener("abort", () => resolve(), { once: true });
        });
      }
    });
  }

  #pending(id: string): Review {
    const review = this.all.get(id);
    if (review?.state === ReviewState.PENDING) return review;
    if (review === undefined) {
      throw new DeputeError(ErrorReason.REVIEW_NOT_FOUND, "no such review", { metadata: { review: id } });
    }
    throw new DeputeError(ErrorReason.REVIEW_CLOSED, "the review is over", {
      metadata: { review: id, state: String(review.state) },
    });
  }

  #change(review: Review): Review {
    this.all.set(review.id, review);
    this.#changes.push(review);
    this.#arrived();
    return review;
  }
}
