import {
  ReviewKind,
  ReviewState,
  ReviewVerdict,
} from "@depute/contracts/depute/verifier/v1/review_service_pb";
import { generateKeypair } from "@depute/dct";
import { afterAll, beforeAll, expect, test } from "vitest";
import { delegator, engine, worker } from "../testing/contracts.ts";
import { as, type Platform, refusal, startPlatform, value } from "../testing/platform.ts";

let platform: Platform;
beforeAll(async () => {
  platform = await startPlatform();
});
afterAll(() => platform.stop());

let requests = 0;
const create = async (change: object = {}) => {
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

test("a service asks, the reviewer reads and decides, once", async () => {
  const { id, state } = await create();
  expect(state).toBe(ReviewState.PENDING);
  const { review } = await platform.reviews.getReview({ id }, as(delegator));
  expect(review?.content).toEqual(value({ secret: 1 }));
  const decision = { id, verdict: ReviewVerdict.CHANGES_REQUESTED, reason: "shorter" };
  const decided = await platform.reviews.decideReview(decision, as(delegator));
  expect(decided.review).toMatchObject({
    state: ReviewState.CHANGES_REQUESTED,
    decidedBy: delegator.principal.id,
    reason: "shorter",
  });
  expect(await platform.reviews.decideReview(decision, as(delegator))).toEqual(decided);
  expect(
    await refusal(
      platform.reviews.decideReview({ ...decision, verdict: ReviewVerdict.APPROVED }, as(delegator)),
    ),
  ).toMatchObject({ reason: "REVIEW_CLOSED", metadata: { state: "changes_requested" } });
});

test("for everybody else there is no such review: neither read, listed, decided nor withdrawn", async () => {
  const { id } = await create();
  const { getReview, decideReview, withdrawReview, listReviews } = platform.reviews;
  const none = { reason: "REVIEW_NOT_FOUND" };
  expect(await refusal(getReview({ id }, as(worker)))).toMatchObject(none);
  const decision = { id, verdict: ReviewVerdict.APPROVED };
  expect(await refusal(decideReview(decision, as(worker)))).toMatchObject(none);
  expect(await refusal(withdrawReview({ id }, as(worker)))).toMatchObject(none);
  expect((await listReviews({}, as(worker))).reviews).toEqual([]);
  expect((await listReviews({ reviewer: delegator.principal.id }, as(worker))).reviews).toEqual([]);
  const forOther = { ...decision, reviewer: delegator.principal.id };
  expect(await refusal(decideReview(forOther, as(worker)))).toMatchObject({ reason: "CALLER_NOT_ALLOWED" });
  expect((await getReview({ id })).review?.state).toBe(ReviewState.PENDING);
});

test("only services ask, and nobody reviews his own work", async () => {
  const request = {
    requestId: "own",
    kind: ReviewKind.START_APPROVAL,
    subject: "x",
    reviewers: [delegator.principal.id],
  };
  expect(await refusal(platform.reviews.createReview(request, as(delegator)))).toMatchObject({
    reason: "CALLER_NOT_ALLOWED",
  });
  expect(
    await refusal(platform.reviews.createReview({ ...request, author: delegator.principal.id })),
  ).toMatchObject({ reason: "CONFLICT_OF_INTEREST" });
  const { id } = await create({ author: worker.principal.id });
  expect(
    await refusal(platform.reviews.decideReview({ id, verdict: ReviewVerdict.APPROVED }, as(worker))),
  ).toMatchObject({ reason: "CONFLICT_OF_INTEREST" });
});

test("a request id stands for one review", async () => {
  const first = await create({ requestId: "same" });
  expect((await create({ requestId: "same" })).id).toBe(first.id);
  platform.clock.advance(1000);
  expect((await create({ requestId: "same" })).id).toBe(first.id);
  const other = create({ requestId: "same", title: "other" });
  expect(await refusal(other)).toMatchObject({ reason: "REQUEST_ID_REUSED" });
});

test("at the escalation others join, at the deadline it is over", async () => {
  const boss = worker;
  const { id } = await create({
    escalationReviewers: [boss.principal.id],
    escalateAfterSeconds: 60n,
    timeoutSeconds: 120n,
  });
  const { id: late } = await create({ timeoutSeconds: 120n });
  const approve = (reviewId: string, by: typeof worker) =>
    platform.reviews.decideReview({ id: reviewId, verdict: ReviewVerdict.APPROVED }, as(by));
  expect(await refusal(approve(id, boss))).toMatchObject({ reason: "REVIEW_NOT_FOUND" });
  platform.clock.advance(60_000);
  expect((await approve(id, boss)).review?.decidedBy).toBe(boss.principal.id);
  platform.clock.advance(60_000);
  expect(await refusal(approve(late, delegator))).toMatchObject({
    reason: "REVIEW_CLOSED",
    metadata: { state: "timed_out" },
  });
  expect((await platform.reviews.getReview({ id: late })).review?.state).toBe(ReviewState.TIMED_OUT);
});

test("a queue is listed in pages, by kind and state", async () => {
  const reviewer = generateKeypair(engine).principal.id;
  const ids: string[] = [];
  for (let i = 0; i < 5; i++) {
    platform.clock.advance(1);
    const kind = i === 2 ? ReviewKind.START_APPROVAL : ReviewKind.OVERSIGHT;
    ids.push((await create({ reviewers: [reviewer], kind })).id);
  }
  const list = async (filter: object) => {
    const found: string[] = [];
    let pageToken = "";
    do {
      const page = await platform.reviews.listReviews({ reviewer, pageSize: 2, ...filter, pageToken });
      expect(page.reviews.length).toBeLessThanOrEqual(2);
      expect(page.reviews.every(({ content }) => content === undefined)).toBe(true);
      found.push(...page.reviews.map(({ id }) => id));
      pageToken = page.nextPageToken;
    } while (pageToken !== "");
    return found;
  };
  expect(await list({})).toEqual(ids);
  expect(await list({ kind: ReviewKind.START_APPROVAL })).toEqual([ids[2]]);
  await platform.reviews.decideReview({ id: ids[0] ?? "", verdict: ReviewVerdict.APPROVED, reviewer });
  expect(await list({ state: ReviewState.PENDING })).toEqual(ids.slice(1));
  expect(await list({ state: ReviewState.APPROVED })).toEqual(ids.slice(0, 1));
});

test("a reviewer watches his own reviews, from where he was", async () => {
  const mine = await create({ reviewers: [worker.principal.id] });
  const others = await create();
  const watch = async (afterSequence: bigint, until: (id: string, state: ReviewState) => boolean) => {
    const ending = new AbortController();
    const seen: { sequence: bigint; id: string }[] = [];
    const options = { ...as(worker), signal: ending.signal };
    for await (const { sequence, review } of platform.reviews.watchReviews({ afterSequence }, options)) {
      seen.push({ sequence, id: review?.id ?? "" });
      if (until(review?.id ?? "", review?.state ?? 0)) break;
    }
    ending.abort();
    return seen;
  };
  const [first] = (await watch(0n, (id) => id === mine.id)).slice(-1);
  const decided = watch(
    first?.sequence ?? 0n,
    (id, state) => id === mine.id && state === ReviewState.APPROVED,
  );
  const next = await create({ reviewers: [worker.principal.id] });
  await platform.reviews.decideReview({ id: mine.id, verdict: ReviewVerdict.APPROVED }, as(worker));
  const seen = await decided;
  expect(seen.map(({ id }) => id)).toEqual([next.id, mine.id]);
  expect(seen.map(({ id }) => id)).not.toContain(others.id);
  expect(seen[1]?.sequence).toBeGreaterThan(seen[0]?.sequence ?? 0n);
});

test("its creator takes a review back", async () => {
  const { id } = await create();
  const withdraw = (options?: ReturnType<typeof as>) =>
    platform.reviews.withdrawReview({ id, reason: "not needed" }, options);
  expect(await refusal(withdraw(as(delegator)))).toMatchObject({ reason: "CALLER_NOT_ALLOWED" });
  expect((await withdraw()).review?.state).toBe(ReviewState.WITHDRAWN);
  expect((await withdraw()).review?.state).toBe(ReviewState.WITHDRAWN);
  expect(
    await refusal(platform.reviews.decideReview({ id, verdict: ReviewVerdict.APPROVED }, as(delegator))),
  ).toMatchObject({ reason: "REVIEW_CLOSED", metadata: { state: "withdrawn" } });
});

test("a reviewer asks, the service that created the review answers, and watchers see both", async () => {
  const contentReference = {
    uri: "task:1",
    digest: `sha256:${"0".repeat(64)}`,
    mediaType: "application/json",
  };
  const { id } = await create({ author: worker.principal.id, content: undefined, contentReference });
  const question = { id, requestId: "q", text: "Where is this from?" };
  const { inquiry } = await platform.reviews.inquireReview(question, as(delegator));
  expect(inquiry).toMatchObject({ number: 1, inquirer: delegator.principal.id, answer: "" });
  expect((await platform.reviews.inquireReview(question, as(delegator))).inquiry).toEqual(inquiry);
  expect(
    await refusal(platform.reviews.inquireReview({ ...question, text: "Why?" }, as(delegator))),
  ).toMatchObject({ reason: "REQUEST_ID_REUSED" });
  expect(await refusal(platform.reviews.inquireReview(question, as(worker)))).toMatchObject({
    reason: "CONFLICT_OF_INTEREST",
  });

  const answer = { id, number: 1, answer: "A book.", answeredBy: worker.principal.id };
  expect(await refusal(platform.reviews.answerReviewInquiry(answer, as(delegator)))).toMatchObject({
    reason: "CALLER_NOT_ALLOWED",
  });
  await platform.reviews.answerReviewInquiry(answer);
  expect(
    await refusal(platform.reviews.answerReviewInquiry({ ...answer, answer: "A dream." })),
  ).toMatchObject({ reason: "INQUIRY_ANSWERED" });
  expect(await refusal(platform.reviews.answerReviewInquiry({ ...answer, number: 2 }))).toMatchObject({
    reason: "INQUIRY_NOT_FOUND",
  });

  const { review } = await platform.reviews.getReview({ id }, as(delegator));
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
