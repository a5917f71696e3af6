import { type JsonValue, toJson } from "@bufbuild/protobuf";
import { timestampMs, ValueSchema } from "@bufbuild/protobuf/wkt";
import type { Client } from "@connectrpc/connect";
import {
  type Review,
  ReviewKind,
  type ReviewService,
  ReviewState,
  type ReviewVerdict,
} from "@depute/contracts/depute/verifier/v1/review_service_pb";
import { delay, FIRST_BACKOFF_MS, LONGEST_BACKOFF_MS, retryUnavailable } from "./retry.ts";

/** The decision of a callback on a review. */
export interface ReviewDecision {
  readonly verdict: ReviewVerdict;
  /** The reason for the decision. Required unless the review is approved. */
  readonly reason?: string;
}

/** The context of a review that a callback must decide. */
export interface ReviewContext {
  readonly review: Review;
  /** Aborts when the review expires or the reviewer stops. */
  readonly signal: AbortSignal;
}

/**
 * A callback that decides a review. If it resolves to undefined, the review stays undecided.
 *
 * @param content the reviewed content; null for a review that refers to content elsewhere (`content_reference`)
 */
export type Decide = (content: JsonValue, context: ReviewContext) => Promise<ReviewDecision | undefined>;

export interface ReviewerOptions {
  readonly calls: Client<typeof ReviewService>;
  readonly decide: Decide;
  /** The reviewer's principal. Default: the caller. */
  readonly reviewer?: string;
  /** The kind of reviews to decide. Default: every kind. */
  readonly kind?: ReviewKind;
  /** Maximum number of concurrent reviews. Default: 8. */
  readonly capacity?: number;
  /** Milliseconds between polls for escalated reviews. Default: one minute. */
  readonly pollMs?: number;
  /**
   * Receives errors. If the callback fails for a review, that review is not decided until the reviewer starts again.
   */
  readonly onError?: (error: unknown) => void;
}

/** A running reviewer. */
export interface Reviewer {
  /** Starts no further callbacks, aborts the running callbacks, and waits until they have ended. */
  stop(): Promise<void>;
}

/**
 * Runs a callback for each review that waits for this reviewer, until `stop` is called (DelegateOS 6.6; CAP,
 * `overseer`; Agenta's approval before start). Reconnects after an outage. The callback gets each review once.
 */
export function startReviewer(options: ReviewerOptions): Reviewer {
  const stopping = new AbortController();
  const callbacks = new ReviewCallbacks(options, stopping.signal);
  const loops = Promise.all([
    followReviews(options, callbacks, stopping.signal),
    pollReviews(options, callbacks, stopping.signal),
  ]);
  return {
    async stop() {
      stopping.abort();
      await loops;
      await callbacks.settled();
    },
  };
}

async function followReviews(
  { calls, kind = ReviewKind.UNSPECIFIED, onError = () => {} }: ReviewerOptions,
  callbacks: ReviewCallbacks,
  signal: AbortSignal,
): Promise<void> {
  let afterSequence = 0n;
  for (let backoff = FIRST_BACKOFF_MS; !signal.aborted; backoff = Math.min(backoff * 2, LONGEST_BACKOFF_MS)) {
    try {
      for await (const { sequence, review } of calls.watchReviews({ afterSequence, kind }, { signal })) {
        backoff = FIRST_BACKOFF_MS;
        afterSequence = sequence;
        if (review !== undefined) await callbacks.take(review);
      }
    } catch (error) {
      if (signal.aborted) return;
      onError(error);
    }
    await delay(backoff, signal);
  }
}

/**
 * Polls for escalated reviews. A review escalates when time passes, and the store does not change. So the stream of
 * changes does not report the escalation.
 */
async function pollReviews(
  {
    calls,
    kind = ReviewKind.UNSPECIFIED,
    reviewer = "",
    pollMs = 60_000,
    onError = () => {},
  }: ReviewerOptions,
  callbacks: ReviewCallbacks,
  signal: AbortSignal,
): Promise<void> {
  while (!signal.aborted) {
    await delay(pollMs, signal);
    try {
      for (let pageToken = ""; !signal.aborted; ) {
        const filters = { kind, reviewer, state: ReviewState.PENDING };
        const page = await calls.listReviews({ ...filters, pageToken }, { signal });
        for (const review of page.reviews) await callbacks.take(review);
        pageToken = page.nextPageToken;
        if (pageToken === "") break;
      }
    } catch (error) {
      if (!signal.aborted) onError(error);
    }
  }
}

/** Runs the callback once for each review. */
class ReviewCallbacks {
  readonly #options: ReviewerOptions;
  readonly #stopping: AbortSignal;
  /** Reviews that were passed to the callback, with their expiry in milliseconds since the Unix epoch. */
  readonly #deliveredReviews = new Map<string, number>();
  readonly #open = new Set<Promise<void>>();

  constructor(options: ReviewerOptions, stopping: AbortSignal) {
    this.#options = options;
    this.#stopping = stopping;
  }

  /** Runs the callback for a waiting review, as soon as the capacity allows it. */
  async take(review: Review): Promise<void> {
    const { reviewer = "", capacity = 8, onError = () => {} } = this.#options;
    const { id, state, deadlineTime } = review;
    const now = Date.now();
    const isMine = reviewer === "" || entitledReviewers(review, now).includes(reviewer);
    if (state !== ReviewState.PENDING || !isMine || this.#deliveredReviews.has(id)) return;
    const deadline = deadlineTime === undefined ? now : timestampMs(deadlineTime);
    for (const [each, end] of this.#deliveredReviews) if (end < now) this.#deliveredReviews.delete(each);
    this.#deliveredReviews.set(id, deadline);
    while (this.#open.size >= capacity) await Promise.race(this.#open);
    if (this.#stopping.aborted) return;
    const asking: Promise<void> = this.#ask(id, deadline - now)
      .catch((error: unknown) => {
        if (!this.#stopping.aborted) onError(error);
      })
      .finally(() => this.#open.delete(asking));
    this.#open.add(asking);
  }

  async settled(): Promise<void> {
    await Promise.all(this.#open);
  }

  async #ask(id: string, leftMs: number): Promise<void> {
    const { calls, decide, reviewer = "" } = this.#options;
    const limit = new AbortController();
    const signal = AbortSignal.any([this.#stopping, limit.signal]);
    // Waits for the expiry, or for 24 days, the maximum of a timer.
    const timer = setTimeout(() => limit.abort(), Math.min(Math.max(0, leftMs), 2 ** 31 - 1));
    try {
      const { review } = await retryUnavailable(signal, () => calls.getReview({ reviewId: id }, { signal }));
      if (review?.state !== ReviewState.PENDING) return;
      const decision = await decide(contentOf(review), { review, signal });
      if (decision === undefined || limit.signal.aborted) return;
      const { verdict, reason = "" } = decision;
      await retryUnavailable(limit.signal, () =>
        calls.decideReview({ reviewId: id, verdict, reason, reviewer }),
      );
    } finally {
      clearTimeout(timer);
    }
  }
}

/** Returns the reviewed content. The platform sends large content as JSON text. */
function contentOf({ content, contentJson }: Review): JsonValue {
  if (contentJson !== "") return JSON.parse(contentJson) as JsonValue;
  return content === undefined ? null : toJson(ValueSchema, content);
}

/** Returns the reviewers who may decide at the time `now`. */
function entitledReviewers(
  { reviewers, escalationReviewers, escalationTime }: Review,
  now: number,
): string[] {
  const hasEscalated = escalationTime !== undefined && timestampMs(escalationTime) <= now;
  return hasEscalated ? [...reviewers, ...escalationReviewers] : reviewers;
}
