import { durationFromMs } from "@bufbuild/protobuf/wkt";
import { type Decide, type Reviewer, startReviewer } from "@depute/client";
import { TaskContractSchema } from "@depute/contracts/delegateos/v0/contract_pb";
import { TaskStatus } from "@depute/contracts/depute/tasks/v1/task_pb";
import {
  ReviewKind,
  ReviewState,
  ReviewVerdict,
} from "@depute/contracts/depute/verifier/v1/review_service_pb";
import { formatTime } from "@depute/core";
import { generateKeypair, newId, signObject, type TaskContract } from "@depute/dct";
import { nativeEngine as engine } from "@depute/dct/native";
import { decode } from "@depute/wire";
import { afterAll, afterEach, beforeAll, expect, test, vi } from "vitest";
import { introduce, startPlatform, type TestPlatform, value } from "../gateway/platform.ts";

let platform: TestPlatform;
const running: Reviewer[] = [];
beforeAll(async () => {
  platform = await startPlatform();
});
afterEach(async () => {
  for (const reviewer of running.splice(0)) await reviewer.stop();
});
afterAll(() => platform.stop());

const issuer = generateKeypair(engine);
const boss = generateKeypair(engine);

/** Makes a contract whose results a person must approve; returns its id. */
async function agree(): Promise<string> {
  const now = Date.now();
  const contract = signObject(
    engine,
    "contract",
    {
      id: newId("ct"),
      version: "0.1",
      issuer: issuer.principal.id,
      createdAt: formatTime(now),
      task: { title: "A poem", description: "", inputs: {}, outputSchema: {} },
      verification: { method: "human_review" } as TaskContract["verification"],
      constraints: {
        maxBudgetMicrocents: 1,
        deadline: formatTime(now + 60_000),
        maxChainDepth: 1,
        requiredCapabilities: [],
      },
    },
    issuer,
  );
  const decoded = decode(TaskContractSchema, contract);
  if (!decoded.ok) throw new Error(decoded.error.message);
  await platform.clients.contracts.createContract({ contract: decoded.message });
  return contract.id;
}

const check = (contractId: string, output: string) =>
  platform.clients.verification.checkOutput({ contractId, output: value(output) });
const begin = (decide: Decide, more: object = {}) => {
  const calls = platform.clients.reviews;
  const reviewer = startReviewer({ calls, decide, reviewer: issuer.principal.id, ...more });
  running.push(reviewer);
  return reviewer;
};

test("a callback decides waiting and new reviews", async () => {
  const contractId = await agree();
  const first = await check(contractId, "good, from before");
  expect(first.result).toBeUndefined();
  begin(async (content, { review: { title, kind } }) => {
    expect([title, kind]).toEqual(["A poem", ReviewKind.HUMAN_REVIEW]);
    const isGood = typeof content === "string" && content.startsWith("good");
    return isGood
      ? { verdict: ReviewVerdict.APPROVED }
      : { verdict: ReviewVerdict.REJECTED, reason: "It does not rhyme." };
  });
  await vi.waitFor(async () => {
    expect((await check(contractId, "good, from before")).result?.passed).toBe(true);
    expect((await check(contractId, "bad")).result).toMatchObject({
      passed: false,
      details: "rejected: It does not rhyme.",
    });
  });
});

test("a task under a reviewed contract completes only after approval", async () => {
  const contractId = await agree();
  await introduce(platform, "poet");
  platform.work("poet", async () => ({ output: "good, in four lines" }));
  const { task } = await platform.clients.tasks.createTask({
    requestId: crypto.randomUUID(),
    draft: { agentId: "poet", description: "Write a poem.", contractId },
  });
  const read = async () => (await platform.clients.tasks.getTask({ taskId: task?.id ?? "" })).task;
  const subject = await vi.waitFor(async () => {
    const { reviews } = await platform.clients.reviews.listReviews({ state: ReviewState.PENDING });
    const review = reviews.find((each) => each.subject.startsWith(contractId));
    expect(review).toBeDefined();
    return review?.subject;
  });
  expect((await read())?.status).toBe(TaskStatus.RUNNING);
  begin(async (_, { review }) =>
    review.subject === subject ? { verdict: ReviewVerdict.APPROVED, reason: "lovely" } : undefined,
  );
  await vi.waitFor(async () => expect((await read())?.status).toBe(TaskStatus.COMPLETED), 10_000);
  expect((await read())?.verification).toMatchObject({ method: "human_review", passed: true });
});

test("an undecided or failed review keeps waiting, and its callback does not run again", async () => {
  const contractId = await agree();
  const askedIds: string[] = [];
  const errors: unknown[] = [];
  const onError = (error: unknown) => errors.push(error);
  const decide: Decide = async (_, { review: { id } }) => {
    askedIds.push(id);
    if (askedIds.length > 1) throw new Error("no idea");
    return undefined;
  };
  begin(decide, { onError, pollMs: 20 });
  const { reviewId: first } = await check(contractId, "one");
  await vi.waitFor(() => expect(askedIds).toEqual([first]));
  const { reviewId: second } = await check(contractId, "two");
  await vi.waitFor(() => expect(errors).toHaveLength(1));
  const third = begin(async () => undefined);
  await third.stop();
  expect(askedIds).toEqual([first, second]);
  for (const id of askedIds) {
    const { review } = await platform.clients.reviews.getReview({ reviewId: id });
    expect(review?.state).toBe(ReviewState.PENDING);
  }
});

test("a stopping reviewer aborts its callbacks", async () => {
  const contractId = await agree();
  const { reviewId } = await check(contractId, "slow");
  const reviewAsked = Promise.withResolvers<void>();
  const reviewer = begin(async (_, { review: { id }, signal }) => {
    if (id !== reviewId) return undefined;
    reviewAsked.resolve();
    await new Promise((resolve) => signal.addEventListener("abort", resolve));
    return undefined;
  });
  await reviewAsked.promise;
  await reviewer.stop();
});

test("a review's deadline aborts its callback, and an escalation asks the new reviewer", async () => {
  const decided = Promise.withResolvers<void>();
  const over = Promise.withResolvers<void>();
  const { review } = await platform.clients.reviews.createReview({
    requestId: crypto.randomUUID(),
    kind: ReviewKind.OVERSIGHT,
    subject: "task",
    reviewers: [issuer.principal.id],
    escalationReviewers: [boss.principal.id],
    escalateAfter: durationFromMs(1_000),
    timeout: durationFromMs(2_000),
  });
  begin(
    async (_, { review: { id }, signal }) => {
      if (id === review?.id) signal.addEventListener("abort", () => over.resolve());
      await over.promise;
      return { verdict: ReviewVerdict.APPROVED };
    },
    { kind: ReviewKind.OVERSIGHT },
  );
  begin(
    async (_, { review: { id } }) => {
      if (id === review?.id) decided.resolve();
      return undefined;
    },
    { kind: ReviewKind.OVERSIGHT, reviewer: boss.principal.id, pollMs: 50 },
  );
  await decided.promise;
  await over.promise;
  const { review: after } = await platform.clients.reviews.getReview({ reviewId: review?.id ?? "" });
  expect(after?.state).toBe(ReviewState.TIMED_OUT);
});
