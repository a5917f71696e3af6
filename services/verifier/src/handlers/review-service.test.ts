import type { MessageInitShape } from "@bufbuild/protobuf";
import { durationFromMs, timestampFromMs } from "@bufbuild/protobuf/wkt";
import {
  type CreateReviewRequestSchema,
  ReviewKind,
  ReviewState,
  ReviewVerdict,
} from "@depute/contracts/depute/verifier/v1/review_service_pb";
import { generateKeypair } from "@depute/dct";
import { afterAll, beforeAll, expect, test } from "vitest";
import { delegator, engine, worker } from "../testing/contracts.ts";
import { asCaller, type Platform, refusal, startPlatform, value } from "../testing/platform.ts";

let platform: Platform;
beforeAll(async () => {
  platform = await startPlatform();
});
afterAll(() => platform.stop());

let requests = 0;
const create = async (change: MessageInitShape<typeof CreateReviewRequestSchema> = {}) => {
  const { review } = await platform.reviews.createReview({
    requestId: `r${++requests}`,
    kind: ReviewKind.OVERSIGHT,
    subject: "task 1",
    title: "Look at this",
    content: value({ secret: 1 }),
    reviewers: [delegator.principal.id],
    ...change,
  });
  if (review === undefined) throw new Error("no review");
  return review;
};

test("a service creates a review, and its reviewer reads and decides it once", async () => {
  const { id, state } = await create();
  expect(state).toBe(ReviewState.PENDING);
  const { review } = await platform.reviews.getReview({ reviewId: id }, asCaller(delegator));
  expect(review?.content).toEqual(value({ secret: 1 }));
  const decision = { reviewId: id, verdict: ReviewVerdict.CHANGES_REQUESTED, reason: "shorter" };
  const decided = await platform.reviews.decideReview(decision, asCaller(delegator));
  expect(decided.review).toMatchObject({
    state: ReviewState.CHANGES_REQUESTED,
    decidedBy: delegator.principal.id,
    reason: "shorter",
  });
  expect(await platform.reviews.decideReview(decision, asCaller(delegator))).toEqual(decided);
  expect(
    await refusal(
      platform.reviews.decideReview({ ...decision, verdict: ReviewVerdict.APPROVED }, asCaller(delegator)),
    ),
  ).toMatchObject({ reason: "REVIEW_CLOSED", metadata: { state: "changes_requested" } });
});

test("other callers can neither read, list, decide nor withdraw a review", async () => {
  const { id } = await create();
  const { getReview, decideReview, withdrawReview, listReviews } = platform.reviews;
  const none = { reason: "REVIEW_NOT_FOUND" };
  expect(await refusal(getReview({ reviewId: id }, asCaller(worker)))).toMatchObject(none);
  const decision = { reviewId: id, verdict: ReviewVerdict.APPROVED };
  expect(await refusal(decideReview(decision, asCaller(worker)))).toMatchObject(none);
  expect(await refusal(withdrawReview({ reviewId: id }, asCaller(worker)))).toMatchObject(none);
  expect((await listReviews({}, asCaller(worker))).reviews).toEqual([]);
  expect((await listReviews({ reviewer: delegator.principal.id }, asCaller(worker))).reviews).toEqual([]);
  const forOther = { ...decision, reviewer: delegator.principal.id };
  expect(await refusal(decideReview(forOther, asCaller(worker)))).toMatchObject({
    reason: "CALLER_NOT_ALLOWED",
  });
  expect((await getReview({ reviewId: id })).review?.state).toBe(ReviewState.PENDING);
});

test("only services create reviews, and authors may not review their own work", async () => {
  const request = {
    requestId: "own",
    kind: ReviewKind.START_APPROVAL,
    subject: "x",
    reviewers: [delegator.principal.id],
  };
  expect(await refusal(platform.reviews.createReview(request, asCaller(delegator)))).toMatchObject({
    reason: "CALLER_NOT_ALLOWED",
  });
  expect(
    await refusal(platform.reviews.createReview({ ...request, author: delegator.principal.id })),
  ).toMatchObject({ reason: "CONFLICT_OF_INTEREST" });
  const { id } = await create({ author: worker.principal.id });
  expect(
    await refusal(
      platform.reviews.decideReview({ reviewId: id, verdict: ReviewVerdict.APPROVED }, asCaller(worker)),
    ),
  ).toMatchObject({ reason: "CONFLICT_OF_INTEREST" });
});

test("a request id identifies one review", async () => {
  const first = await create({ requestId: "same" });
  expect((await create({ requestId: "same" })).id).toBe(first.id);
  platform.clock.advance(1000);
  expect((await create({ requestId: "same" })).id).toBe(first.id);
  const other = create({ requestId: "same", title: "other" });
  expect(await refusal(other)).toMatchObject({ reason: "REQUEST_ID_REUSED" });
});

test("escalation reviewers join at the escalation, and the review closes at its deadline", async () => {
  const boss = worker;
  const { id } = await create({
    escalationReviewers: [boss.principal.id],
    escalateAfter: durationFromMs(60_000),
    timeout: durationFromMs(120_000),
  });
  const { id: late } = await create({ timeout: durationFromMs(120_000) });
  const approve = (reviewId: string, by: typeof worker) =>
    platform.reviews.decideReview({ reviewId, verdict: ReviewVerdict.APPROVED }, asCaller(by));
  expect(await refusal(approve(id, boss))).toMatchObject({ reason: "REVIEW_NOT_FOUND" });
  platform.clock.advance(60_000);
  expect((await approve(id, boss)).review?.decidedBy).toBe(boss.principal.id);
  platform.clock.advance(60_000);
  expect(await refusal(approve(late, delegator))).toMatchObject({
    reason: "REVIEW_CLOSED",
    metadata: { state: "timed_out" },
  });
  expect((await platform.reviews.getReview({ reviewId: late })).review?.state).toBe(ReviewState.TIMED_OUT);
});

test("lists the queue in pages, by kind, state and subject", async () => {
  const reviewer = generateKeypair(engine).principal.id;
  const ids: string[] = [];
  for (let i = 0; i < 5; i++) {
    platform.clock.advance(1);
    const kind = i === 2 ? ReviewKind.START_APPROVAL : ReviewKind.OVERSIGHT;
    ids.push((await create({ reviewers: [reviewer], kind, ...(i > 2 && { subject: "a task" }) })).id);
  }
  const list = async (filter: object) => {
    const foundIds: string[] = [];
    let pageToken = "";
    do {
      const page = await platform.reviews.listReviews({ reviewer, pageSize: 2, ...filter, pageToken });
      expect(page.reviews.length).toBeLessThanOrEqual(2);
      expect(page.reviews.every(({ content }) => content === undefined)).toBe(true);
      foundIds.push(...page.reviews.map(({ id }) => id));
      pageToken = page.nextPageToken;
    } while (pageToken !== "");
    return foundIds;
  };
  expect(await list({})).toEqual(ids);
  expect(await list({ kind: ReviewKind.START_APPROVAL })).toEqual([ids[2]]);
  expect(await list({ subject: "a task" })).toEqual(ids.slice(3));
  expect(await list({ subject: "a task", kind: ReviewKind.START_APPROVAL })).toEqual([]);
  expect(await list({ subject: "a task", reviewer: generateKeypair(engine).principal.id })).toEqual([]);
  await platform.reviews.decideReview({ reviewId: ids[0] ?? "", verdict: ReviewVerdict.APPROVED, reviewer });
  expect(await list({ state: ReviewState.PENDING })).toEqual(ids.slice(1));
  expect(await list({ state: ReviewState.APPROVED })).toEqual(ids.slice(0, 1));
});

test.each([
  ["a negative timeout", { timeout: durationFromMs(-1) }, "timeout"],
  ["a timeout above 365 days", { timeout: durationFromMs(365 * 86_400_000 + 1) }, "timeout"],
  ["a negative time to the escalation", { escalateAfter: durationFromMs(-1) }, "escalate_after"],
  [
    "an escalation after the deadline",
    { timeout: durationFromMs(1000), escalateAfter: durationFromMs(1001) },
    "escalate_after",
  ],
  [
    "a digest that is not SHA-256",
    { contentReference: { uri: "task:1", digest: Buffer.alloc(31) } },
    "content_reference.digest",
  ],
])("refuses %s", async (_, change, field) => {
  expect(await refusal(create(change))).toMatchObject({
    reason: "INVALID_REQUEST",
    violations: [expect.objectContaining({ field })],
  });
});

test("a review without a timeout has a day, and escalates after half of it", async () => {
  const now = platform.clock.now();
  expect(await create({ escalationReviewers: [worker.principal.id] })).toMatchObject({
    deadlineTime: timestampFromMs(now + 86_400_000),
    escalationTime: timestampFromMs(now + 43_200_000),
  });
});

test("a watch sends its start position on request", async () => {
  const stop = new AbortController();
  const request = { afterSequence: 1n, sendStart: true };
  for await (const change of platform.reviews.watchReviews(request, { signal: stop.signal })) {
    expect(change).toMatchObject({ sequence: 1n });
    expect(change.review).toBeUndefined();
    break;
  }
  stop.abort();
});

test("a reviewer watches its own reviews and resumes at a sequence", async () => {
  const mine = await create({ reviewers: [worker.principal.id] });
  const others = await create();
  const watch = async (afterSequence: bigint, until: (id: string, state: ReviewState) => boolean) => {
    const ending = new AbortController();
    const seenReviews: { sequence: bigint; id: string }[] = [];
    const options = { ...asCaller(worker), signal: ending.signal };
    for await (const { sequence, review } of platform.reviews.watchReviews({ afterSequence }, options)) {
      seenReviews.push({ sequence, id: review?.id ?? "" });
      if (until(review?.id ?? "", review?.state ?? 0)) break;
    }
    ending.abort();
    return seenReviews;
  };
  const [first] = (await watch(0n, (id) => id === mine.id)).slice(-1);
  const decided = watch(
    first?.sequence ?? 0n,
    (id, state) => id === mine.id && state === ReviewState.APPROVED,
  );
  const next = await create({ reviewers: [worker.principal.id] });
  await platform.reviews.decideReview(
    { reviewId: mine.id, verdict: ReviewVerdict.APPROVED },
    asCaller(worker),
  );
  const decidedReview = await decided;
  expect(decidedReview.map(({ id }) => id)).toEqual([next.id, mine.id]);
  expect(decidedReview.map(({ id }) => id)).not.toContain(others.id);
  expect(decidedReview[1]?.sequence).toBeGreaterThan(decidedReview[0]?.sequence ?? 0n);
});

test("the creator withdraws a review", async () => {
  const { id } = await create();
  const withdraw = (options?: ReturnType<typeof asCaller>) =>
    platform.reviews.withdrawReview({ reviewId: id, reason: "not needed" }, options);
  expect(await refusal(withdraw(asCaller(delegator)))).toMatchObject({ reason: "CALLER_NOT_ALLOWED" });
  expect((await withdraw()).review?.state).toBe(ReviewState.WITHDRAWN);
  expect((await withdraw()).review?.state).toBe(ReviewState.WITHDRAWN);
  expect(
    await refusal(
      platform.reviews.decideReview({ reviewId: id, verdict: ReviewVerdict.APPROVED }, asCaller(delegator)),
    ),
  ).toMatchObject({ reason: "REVIEW_CLOSED", metadata: { state: "withdrawn" } });
});

test("a reviewer inquires, the creator answers, and watchers see both", async () => {
  const contentReference = {
    uri: "task:1",
    digest: Buffer.alloc(32, 7),
    mediaType: "application/json",
  };
  const { id } = await create({ author: worker.principal.id, content: undefined, contentReference });
  const question = { reviewId: id, requestId: "q", text: "Where is this from?" };
  const { inquiry } = await platform.reviews.inquireReview(question, asCaller(delegator));
  expect(inquiry).toMatchObject({ number: 1, inquirer: delegator.principal.id, answer: "" });
  expect((await platform.reviews.inquireReview(question, asCaller(delegator))).inquiry).toEqual(inquiry);
  expect(
    await refusal(platform.reviews.inquireReview({ ...question, text: "Why?" }, asCaller(delegator))),
  ).toMatchObject({ reason: "REQUEST_ID_REUSED" });
  expect(await refusal(platform.reviews.inquireReview(question, asCaller(worker)))).toMatchObject({
    reason: "CONFLICT_OF_INTEREST",
  });

  const answer = { reviewId: id, number: 1, answer: "A book.", answeredBy: worker.principal.id };
  expect(await refusal(platform.reviews.answerReviewInquiry(answer, asCaller(delegator)))).toMatchObject({
    reason: "CALLER_NOT_ALLOWED",
  });
  await platform.reviews.answerReviewInquiry(answer);
  expect(
    await refusal(platform.reviews.answerReviewInquiry({ ...answer, answer: "A dream." })),
  ).toMatchObject({ reason: "INQUIRY_ANSWERED" });
  expect(await refusal(platform.reviews.answerReviewInquiry({ ...answer, number: 2 }))).toMatchObject({
    reason: "INQUIRY_NOT_FOUND",
  });

  const { review } = await platform.reviews.getReview({ reviewId: id }, asCaller(delegator));
  expect(review).toMatchObject({
    contentReference,
    state: ReviewState.PENDING,
    inquiries: [{ text: "Where is this from?", answer: "A book.", answeredBy: worker.principal.id }],
  });
  expect(review?.content).toBeUndefined();
  const stop = new AbortController();
  const changes: string[] = [];
  const request = { kind: ReviewKind.OVERSIGHT };
  for await (const change of platform.reviews.watchReviews(request, { signal: stop.signal })) {
    if (change.review?.id === id) changes.push(change.review.inquiries[0]?.answer ?? "nothing");
    if (changes.length === 3) break;
  }
  stop.abort();
  expect(changes).toEqual(["A book.", "A book.", "A book."]);
});
