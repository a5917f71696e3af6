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
import { delay, FIRST_BACKOFF_MS, insist, LONGEST_BACKOFF_MS } from "./insist.ts";

/** What a callback makes of a review. */
export interface ReviewDecision {
  readonly verdict: ReviewVerdict;
  /** Needed unless it is approved. */
  readonly reason?: string;
}

/** What a review is decided with. */
export interface ReviewContext {
  readonly review: Review;
  /** Aborts when the review's time is over, or the reviewer stops. */
  readonly signal: AbortSignal;
}

/**
 * Asked to decide a review. Without an answer it stays undecided.
 *
 * @param content what is reviewed; null for a review that refers to content elsewhere (`content_reference`)
 */
export type Decide = (content: JsonValue, context: ReviewContext) => Promise<ReviewDecision | undefined>;

export interface ReviewerOptions {
  readonly calls: Client<typeof ReviewService>;
  readonly decide: Decide;
  /** The principal that decides; the caller itself when absent. */
  readonly reviewer?: string;
  /** What it is asked about; everything when absent. */
  readonly kind?: ReviewKind;
  /** Reviews at a time, 8 when absent. */
  readonly capacity?: number;
  /** Milliseconds between looks for reviews that it has joined by escalation, a minute when absent. */
  readonly pollMs?: number;
  /** Told about what went wrong: a callback that failed is not asked again before the next start. */
  readonly onError?: (error: unknown) => void;
}

/** A reviewer that runs. */
export interface Reviewer {
  /** Asks no more, and waits for the callbacks that are running, whose signals abort. */
  stop(): Promise<void>;
}

/**
 * Has a callback decide what waits for a reviewer (DelegateOS 6.6; CAP, `overseer`; Agenta's approval before start), until
 * it is stopped; re-attaches when the platform was away. Each review is given to the callback once.
 */
export function startReviewer(options: ReviewerOptions): Reviewer {
  const stopping = new AbortController();
  const desk = new Desk(options, stopping.signal);
  const loops = Promise.all([watch(options, desk, stopping.signal), look(options, desk, stopping.signal)]);
  return {
    async stop() {
      stopping.abort();
      await loops;
      await desk.over();
    },
  };
}

async function watch(
  { calls, kind = ReviewKind.UNSPECIFIED, onError = () => {} }: ReviewerOptions,
  desk: Desk,
  signal: AbortSignal,
): Promise<void> {
  let afterSequence = 0n;
  for (let backoff = FIRST_BACKOFF_MS; !signal.aborted; backoff = Math.min(backoff * 2, LONGEST_BACKOFF_MS)) {
    try {
      for await (const { sequence, review } of calls.watchReviews({ afterSequence, kind }, { signal })) {
        backoff = FIRST_BACKOFF_MS;
        afterSequence = sequence;
        if (review !== undefined) await desk.take(review);
      }
    } catch (error) {
      if (signal.aborted) return;
      onError(error);
    }
    await delay(backoff, signal);
  }
}

/** That somebody joins by escalation follows from the time alone, so a stream of changes does not tell it. */
async function look(
  {
    calls,
    kind = ReviewKind.UNSPECIFIED,
    reviewer = "",
    pollMs = 60_000,
    onError = () => {},
  }: ReviewerOptions,
  desk: Desk,
  signal: AbortSignal,
): Promise<void> {
  while (!signal.aborted) {
    await delay(pollMs, signal);
    try {
      for (let pageToken = ""; !signal.aborted; ) {
        const filters = { kind, reviewer, state: ReviewState.PENDING };
        const page = await calls.listReviews({ ...filters, pageToken }, { signal });
        for (const review of page.reviews) await desk.take(review);
        pageToken = page.nextPageToken;
        if (pageToken === "") break;
      }
    } catch (error) {
      if (!signal.aborted) onError(error);
    }
  }
}

/** What lies before the callback. */
class Desk {
  readonly #options: ReviewerOptions;
  readonly #stopping: AbortSignal;
  /** Reviews that the callback was asked about, and when they are over, in milliseconds since the Unix epoch. */
  readonly #asked = new Map<string, number>();
  readonly #open = new Set<Promise<void>>();

  constructor(options: ReviewerOptions, stopping: AbortSignal) {
    this.#options = options;
    this.#stopping = stopping;
  }

  /** Asks about a review that waits, once there is room. */
  async take(review: Review): Promise<void> {
    const { reviewer = "", capacity = 8, onError = () => {} } = this.#options;
    const { id, state, deadlineTime } = review;
    const now = Date.now();
    const isMine = reviewer === "" || entitled(review, now).includes(reviewer);
    if (state !== ReviewState.PENDING || !isMine || this.#asked.has(id)) return;
    const deadline = deadlineTime === undefined ? now : timestampMs(deadlineTime);
    for (const [each, end] of this.#asked) if (end < now) this.#asked.delete(each);
    this.#asked.set(id, deadline);
    while (this.#open.size >= capacity) await Promise.race(this.#open);
    if (this.#stopping.aborted) return;
    const asking: Promise<void> = this.#ask(id, deadline - now)
      .catch((error: unknown) => {
        if (!this.#stopping.aborted) onError(error);
      })
      .finally(() => this.#open.delete(asking));
    this.#open.add(asking);
  }

  async over(): Promise<void> {
    await Promise.all(this.#open);
  }

  async #ask(id: string, leftMs: number): Promise<void> {
    const { calls, decide, reviewer = "" } = this.#options;
    const limit = new AbortController();
    const signal = AbortSignal.any([this.#stopping, limit.signal]);
    // A timer waits for 24 days at most.
    const timer = setTimeout(() => limit.abort(), Math.min(Math.max(0, leftMs), 2 ** 31 - 1));
    try {
      const { review } = await insist(signal, () => calls.getReview({ id }, { signal }));
      if (review?.state !== ReviewState.PENDING) return;
      const decision = await decide(contentOf(review), { review, signal });
      if (decision === undefined || limit.signal.aborted) return;
      const { verdict, reason = "" } = decision;
      await insist(limit.signal, () => calls.decideReview({ id, verdict, reason, reviewer }));
    } finally {
      clearTimeout(timer);
    }
  }
}

/** Large content travels as text. */
function contentOf({ content, contentJson }: Review): JsonValue {
  if (contentJson !== "") return JSON.parse(contentJson) as JsonValue;
  return content === undefined ? null : toJson(ValueSchema, content);
}

/** Who may decide at a time. */
function entitled({ reviewers, escalationReviewers, escalationTime }: Review, now: number): string[] {
  const hasEscalated = escalationTime !== undefined && timestampMs(escalationTime) <= now;
  return hasEscalated ? [...reviewers, ...escalationReviewers] : reviewers;
}
