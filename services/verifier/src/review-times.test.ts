import {
  ReviewKind,
  ReviewState,
  ReviewVerdict,
} from "@depute/contracts/depute/verifier/v1/review_service_pb";
import { newId } from "@depute/core";
import { afterEach, beforeEach, expect, test } from "vitest";
import { delegator, worker } from "./testing/contracts.ts";
import { as, type Platform, refusal, startPlatform } from "./testing/platform.ts";

const BOSS = "the boss";

let platform: Platform;
const watching: AbortController[] = [];
beforeEach(async () => {
  platform = await startPlatform();
});
afterEach(async () => {
  for (const one of watching.splice(0)) one.abort();
  await platform.stop();
});

let requests = 0;
async function create(change: object = {}) {
  const { review } = await platform.reviews.createReview({
    requestId: `r${++requests}`,
    kind: ReviewKind.OVERSIGHT,
    subject: "task 1",
    reviewers: [delegator.principal.id],
    escalationReviewers: [BOSS],
    timeoutSeconds: 100n,
    ...change,
  });
  if (review === undefined) throw new Error("no review");
  return review;
}

const WORDS = new Map<ReviewState, string>([
  [ReviewState.PENDING, "PENDING"],
  [ReviewState.APPROVED, "APPROVED"],
  [ReviewState.TIMED_OUT, "TIMED_OUT"],
]);

/** Follows the changes of one review: the words of the next ones. */
function watch(id: string) {
  const ending = new AbortController();
  watching.push(ending);
  const changes = platform.reviews.watchReviews({}, { signal: ending.signal })[Symbol.asyncIterator]();
  return {
    async next(): Promise<string> {
      for (;;) {
        const { value, done } = await changes.next();
        if (done) throw new Error("the stream has ended");
        if (value.review?.id !== id) continue;
        const word = WORDS.get(value.review.state) ?? "";
        return value.review.escalated ? `${word}, escalated` : word;
      }
    },
  };
}

test("watchers hear of the escalation and of the time-out, each once", async () => {
  const { id } = await create();
  const changes = watch(id);
  expect(await changes.next()).toBe("PENDING");
  platform.clock.advance(50_000);
  expect(await changes.next()).toBe("PENDING, escalated");
  platform.clock.advance(50_000);
  expect(await changes.next()).toBe("TIMED_OUT, escalated");
  const { review } = await platform.reviews.getReview({ id });
  expect(review).toMatchObject({ state: ReviewState.TIMED_OUT, escalated: true });
});

test("a decision ends what time would have changed", async () => {
  const { id } = await create();
  await platform.reviews.decideReview({ id, verdict: ReviewVerdict.APPROVED }, as(delegator));
  const other = await create();
  const changes = watch(other.id);
  platform.clock.advance(100_000);
  while ((await changes.next()) !== "TIMED_OUT, escalated");
  const seen: string[] = [];
  const ending = new AbortController();
  for await (const { review } of platform.reviews.watchReviews({}, { signal: ending.signal })) {
    seen.push(review?.id ?? "");
    if (review?.id === other.id && seen.filter((one) => one === other.id).length === 2) break;
  }
  ending.abort();
  expect(seen.filter((one) => one === id)).toHaveLength(2);
});

test("what time changed while the service was down is recorded at its start", async () => {
  const { id } = await create();
  await platform.restart();
  platform.clock.advance(100_000);
  await platform.restart();
  const changes = watch(id);
  let last = "";
  while (last !== "TIMED_OUT, escalated") last = await changes.next();
});

test("a creator names its review, once", async () => {
  const id = newId();
  const request = { id, requestId: "named" };
  expect((await create(request)).id).toBe(id);
  expect((await create(request)).id).toBe(id);
  expect(await refusal(create({ ...request, subject: "task 2" }))).toMatchObject({
    reason: "REQUEST_ID_REUSED",
  });
  expect(await refusal(create({ ...request, requestId: "another" }))).toMatchObject({
    reason: "REQUEST_ID_REUSED",
  });
  expect(await refusal(create({ id: "no uuid" }))).toMatchObject({ reason: "INVALID_REQUEST" });
  // A name that is known gives no sight of the review.
  expect(await refusal(platform.reviews.getReview({ id }, as(worker)))).toMatchObject({
    reason: "REVIEW_NOT_FOUND",
  });
});
