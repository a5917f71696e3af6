import { durationFromMs } from "@bufbuild/protobuf/wkt";
import {
  ReviewKind,
  ReviewState,
  ReviewVerdict,
} from "@depute/contracts/depute/verifier/v1/review_service_pb";
import { newId } from "@depute/core";
import { afterEach, beforeEach, expect, test } from "vitest";
import { delegator, worker } from "./testing/contracts.ts";
import { asCaller, type Platform, refusal, startPlatform } from "./testing/platform.ts";

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
    timeout: durationFromMs(100_000),
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

/** Watches one review. The returned function waits for the review's next change, and returns its state. */
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

test("watchers get the escalation and the time-out once each", async () => {
  const { id } = await create();
  const changes = watch(id);
  expect(await changes.next()).toBe("PENDING");
  platform.clock.advance(50_000);
  expect(await changes.next()).toBe("PENDING, escalated");
  platform.clock.advance(50_000);
  expect(await changes.next()).toBe("TIMED_OUT, escalated");
  const { review } = await platform.reviews.getReview({ reviewId: id });
  expect(review).toMatchObject({ state: ReviewState.TIMED_OUT, escalated: true });
});

test("a decided review neither escalates nor times out", async () => {
  const { id } = await create();
  await platform.reviews.decideReview({ reviewId: id, verdict: ReviewVerdict.APPROVED }, asCaller(delegator));
  const other = await create();
  const changes = watch(other.id);
  platform.clock.advance(100_000);
  while ((await changes.next()) !== "TIMED_OUT, escalated");
  const times: string[] = [];
  const ending = new AbortController();
  for await (const { review } of platform.reviews.watchReviews({}, { signal: ending.signal })) {
    times.push(review?.id ?? "");
    if (review?.id === other.id && times.filter((one) => one === other.id).length === 2) break;
  }
  ending.abort();
  expect(times.filter((one) => one === id)).toHaveLength(2);
});

test("a start records escalations and time-outs of the downtime", async () => {
  const { id } = await create();
  await platform.restart();
  platform.clock.advance(100_000);
  await platform.restart();
  const changes = watch(id);
  let last = "";
  while (last !== "TIMED_OUT, escalated") last = await changes.next();
});

test("a creator may choose the id of its review once", async () => {
  const id = newId();
  const request = { reviewId: id, requestId: "named" };
  expect((await create(request)).id).toBe(id);
  expect((await create(request)).id).toBe(id);
  expect(await refusal(create({ ...request, subject: "task 2" }))).toMatchObject({
    reason: "REQUEST_ID_REUSED",
  });
  expect(await refusal(create({ ...request, requestId: "another" }))).toMatchObject({
    reason: "REQUEST_ID_REUSED",
  });
  expect(await refusal(create({ reviewId: "no uuid" }))).toMatchObject({ reason: "INVALID_REQUEST" });
  // The id of a review alone does not let a caller read the review.
  expect(await refusal(platform.reviews.getReview({ reviewId: id }, asCaller(worker)))).toMatchObject({
    reason: "REVIEW_NOT_FOUND",
  });
});
