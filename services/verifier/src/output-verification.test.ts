import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { create } from "@bufbuild/protobuf";
import { type SerializedDCT, SerializedDCTSchema } from "@depute/contracts/delegateos/v0/token_pb";
import { ReviewState, ReviewVerdict } from "@depute/contracts/depute/verifier/v1/review_service_pb";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import type { VerificationSpec } from "./rules/documents.ts";
import { delegator, signedContract, worker } from "./testing/contracts.ts";
import { type FakeModel, fakeModel } from "./testing/fake-model.ts";
import { fakeTokens } from "./testing/fake-tokens.ts";
import { asCaller, message, type Platform, refusal, startPlatform, value } from "./testing/platform.ts";

const folder = mkdtempSync(join(tmpdir(), "depute-judges-"));
let model: FakeModel;
let platform: Platform;
const tokens = fakeTokens();
beforeAll(async () => {
  model = await fakeModel();
  const key = join(folder, "key");
  writeFileSync(key, "secret\n");
  const judgesFile = join(folder, "judges.json");
  const price = { inputMicrocentsPerMillion: 1_000_000, outputMicrocentsPerMillion: 10_000_000 };
  writeFileSync(
    judgesFile,
    JSON.stringify([
      {
        models: ["claude-sonnet-4-20250514"],
        style: "anthropic",
        url: `http://${model.host}/anthropic`,
        keyFile: key,
        ...price,
      },
      { models: ["other"], style: "openai", url: `http://${model.host}/openai`, keyFile: key, ...price },
    ]),
  );
  platform = await startPlatform(
    [
      ...["--verifier-judges", judgesFile, "--verifier-outbound-hosts", model.host],
      ...["--verifier-judge-timeout", "1500ms", "--verifier-judges-at-once", "1"],
    ],
    tokens,
  );
});
afterAll(async () => {
  await platform.stop();
  await model.stop();
  rmSync(folder, { recursive: true });
});
beforeEach(() => {
  model.answer();
  tokens.setSpend(Number.MAX_SAFE_INTEGER);
});

const judge = (change: Partial<VerificationSpec> = {}): VerificationSpec => ({
  method: "llm_judge",
  judgePrompt: "How good is {output} for {contract}?",
  passThreshold: 0.7,
  ...change,
});
const agree = async (verification: VerificationSpec, maxBudgetMicrocents = 1_000_000) =>
  (await platform.agree({ verification, outputSchema: true, maxBudgetMicrocents })).id;
const check = (contractId: string, output = "fine", options?: ReturnType<typeof asCaller>) =>
  platform.verification.checkOutput({ contractId, output: value(output) }, options);

test("asks a model three times, takes the median, and reports the cost", async () => {
  const contractId = await agree(judge());
  model.answer(0.9, 0.1, 0.8);
  const { result, judgeCostMicrocents } = await check(contractId);
  expect(result).toMatchObject({ passed: true, score: 0.8 });
  expect(result?.details).toContain("differ by 0.80");
  // The cost of three answers, each with 100 input tokens at 1 microcent and 10 output tokens at 10 microcents.
  expect(judgeCostMicrocents).toBe(600n);
  expect(model.asked).toHaveLength(3);
  const [first] = model.asked;
  expect([first?.path, first?.headers["x-api-key"], first?.headers["anthropic-version"]]).toEqual([
    "/anthropic",
    "secret",
    "2023-06-01",
  ]);
  expect(first?.body).toMatchObject({ model: "claude-sonnet-4-20250514", temperature: 0 });
  expect(first?.body.messages[0]?.content).toContain('## Agent Output\n"fine"');
});

test("asks an endpoint of the Anthropic style", async () => {
  const contractId = await agree(judge({ judgeModel: "other", judgeTemperature: 0.5, evaluations: 1 }));
  model.answer(0.6);
  expect((await check(contractId)).result).toMatchObject({ passed: false, score: 0.6 });
  expect(model.asked[0]).toMatchObject({
    path: "/openai",
    headers: { authorization: "Bearer secret" },
    body: { model: "other", temperature: 0.5 },
  });
});

test("asks and charges once for equal outputs", async () => {
  const contractId = await agree(judge({ evaluations: 1 }));
  model.answer(0.2, 0.9);
  const first = await check(contractId);
  expect(await check(contractId)).toEqual(first);
  expect(model.asked).toHaveLength(1);
  expect((await check(contractId, "another")).result?.passed).toBe(true);
  const together = await Promise.all([1, 2, 3].map(() => check(contractId, "a third")));
  expect(new Set(together.map(({ judgeCostMicrocents }) => judgeCostMicrocents))).toEqual(new Set([200n]));
  expect(model.asked).toHaveLength(3);
});

test.each<[what: string, ...replies: Parameters<FakeModel["answer"]>]>([
  ["does not answer in time", 1, "hang", 1],
  ["gives no score", 1, 1, "It is good: 1.0"],
  ["refuses", { status: 500 }, 1, 1],
  ["redirects", { status: 307, headers: { location: "http://127.0.0.1:1/" } }, 1, 1],
])("an output does not pass by a model that %s, and the next call asks again", async (_, ...replies) => {
  const contractId = await agree(judge());
  model.answer(...replies);
  const { result } = await check(contractId);
  expect(result).toMatchObject({ passed: false, score: 0 });
  expect(result?.details).toContain("the check could not run");
  model.answer(1, 1, 1);
  expect((await check(contractId)).result?.passed).toBe(true);
});

test("only the issuer may start a model, but other callers may read its result", async () => {
  const contractId = await agree(judge({ evaluations: 1 }));
  expect(await refusal(check(contractId, "fine", asCaller(worker)))).toMatchObject({
    reason: "CALLER_NOT_ALLOWED",
  });
  expect(model.asked).toHaveLength(0);
  const verification = await check(contractId, "fine", asCaller(delegator));
  expect(await check(contractId, "fine", asCaller(worker))).toEqual(verification);
});

test("refuses a model once its cost has reached the contract's budget", async () => {
  const contractId = await agree(judge({ evaluations: 1 }), 300);
  await check(contractId, "one");
  await check(contractId, "two");
  expect(await refusal(check(contractId, "three"))).toMatchObject({
    reason: "BUDGET_EXCEEDED",
    metadata: { needed: "400", allowed: "300" },
  });
  expect(model.asked).toHaveLength(2);
});

const walletOf = (holder: { principal: { id: string } }, change: object = {}) =>
  create(
    SerializedDCTSchema,
    tokens.mint({
      delegatee: holder.principal.id,
      capabilities: [{ namespace: "llm", action: "generate", resource: "*" }],
      contractId: "ct_0123456789ab",
      maxBudgetMicrocents: 1_000_000,
      maxChainDepth: 1,
      expiresAt: "2026-01-01T12:00:00Z",
      ...change,
    }),
  );
const checkUnder = (contractId: string, payingToken: SerializedDCT, output = "fine") =>
  platform.verification.checkOutput({ contractId, output: value(output), payingToken });

test("reserves the largest cost under the token and charges the actual cost", async () => {
  const contractId = await agree(judge({ evaluations: 1 }));
  const { judgeCostMicrocents } = await checkUnder(contractId, walletOf(delegator));
  expect(judgeCostMicrocents).toBe(200n);
  const [reserved] = tokens.reservations;
  expect(reserved?.charged).toBe(200);
  // The maximum cost: an input token for each byte of the prompt, and the maximum number of output tokens.
  const promptBytes = Buffer.byteLength(model.asked[0]?.body.messages[0]?.content ?? "");
  expect(reserved?.amount).toBe(promptBytes + 64 + 10 * 1024);
  await checkUnder(contractId, walletOf(delegator));
  expect(tokens.reservations).toHaveLength(1);
});

test("charges the whole reservation if the model does not answer", async () => {
  const contractId = await agree(judge({ evaluations: 1 }));
  model.answer("hang");
  expect((await checkUnder(contractId, walletOf(delegator))).result?.passed).toBe(false);
  const [reserved] = tokens.reservations;
  expect(reserved?.charged).toBe(reserved?.amount);
  model.answer({ status: 429 });
  await checkUnder(contractId, walletOf(delegator));
  expect(tokens.reservations[1]?.charged).toBe(0);
});

test("asks and charges nothing if the token does not cover the cost", async () => {
  const contractId = await agree(judge({ evaluations: 1 }), 300);
  tokens.setSpend(1000);
  const refused = { reason: "BUDGET_EXCEEDED" };
  expect(await refusal(checkUnder(contractId, walletOf(delegator)))).toMatchObject(refused);
  expect(await refusal(checkUnder(contractId, walletOf(worker)))).toMatchObject({
    reason: "CALLER_NOT_ALLOWED",
  });
  const ending = walletOf(delegator, { expiresAt: "2026-01-01T00:00:01Z" });
  platform.clock.advance(60_000);
  expect(await refusal(checkUnder(contractId, ending))).toMatchObject({ reason: "TOKEN_DENIED" });
  expect([model.asked, tokens.reservations]).toEqual([[], []]);
  // The refused runs also added no cost to the contract.
  expect((await check(contractId)).judgeCostMicrocents).toBe(200n);
});

test("answers even if the charge fails, and the reservation stays unsettled", async () => {
  const contractId = await agree(judge({ evaluations: 1 }));
  tokens.setSpend(Number.MAX_SAFE_INTEGER, true);
  expect((await checkUnder(contractId, walletOf(delegator))).result?.passed).toBe(true);
  expect(tokens.reservations).toMatchObject([{ charged: undefined }]);
});

test("concurrent outputs cannot exceed the contract's budget together", async () => {
  const contractId = await agree(judge({ evaluations: 1 }), 300);
  const { promise: modelScore, resolve: answer } = Promise.withResolvers<number>();
  model.answer(modelScore);
  let refused = 0;
  const outcomes = await Promise.allSettled(
    ["one", "two", "three", "four"].map((output) =>
      check(contractId, output).catch((error: unknown) => {
        // The model answers the question of one run only after the three other runs were refused.
        if (++refused === 3) answer(1);
        throw error;
      }),
    ),
  );
  expect(outcomes.filter(({ status }) => status === "fulfilled")).toHaveLength(1);
  expect(model.asked).toHaveLength(1);
  expect((await check(contractId, "five")).result?.passed).toBe(true);
});

test("a failed cheap step of a composite keeps the model from being asked", async () => {
  const steps = [
    {
      method: "deterministic_check",
      checkName: "string_length",
      checkParams: { min: 3 },
    },
    judge({ evaluations: 1 }),
  ] satisfies VerificationSpec[];
  const contractId = await agree({ method: "composite", mode: "all_pass", steps });
  expect((await check(contractId, "no")).result?.details).toContain("Step 0 failed");
  expect(model.asked).toHaveLength(0);
  expect((await check(contractId, "long")).result?.passed).toBe(true);
  const weighted = await agree({ method: "composite", mode: "weighted", weights: [0.5, 0.5], steps });
  model.answer(0.5);
  expect((await check(weighted, "long")).result).toMatchObject({ passed: true, score: 0.75 });
});

test.each<[what: string, change: Partial<VerificationSpec>, field: string]>([
  ["of an unknown model", { judgeModel: "none" }, "contract.verification.judge_model"],
  ["without placeholders", { judgePrompt: "good?" }, "contract.verification.judge_prompt"],
])("refuses a contract with a judge %s", async (_, change, field) => {
  const contract = message(signedContract({ verification: judge(change) }));
  expect(await refusal(platform.contracts.createContract({ contract }))).toMatchObject({
    reason: "INVALID_REQUEST",
    fields: [field],
  });
});

test("an output waits for its review, then has its result", async () => {
  const contractId = await agree({ method: "human_review" });
  const { reviewId, result } = await check(contractId, "look");
  expect(result).toBeUndefined();
  expect((await check(contractId, "look")).reviewId).toBe(reviewId);
  const attest = () =>
    platform.attestations.attestOutput({
      requestId: "human",
      contractId,
      delegationId: "del_0123456789ab",
      output: value("look"),
    });
  expect(await refusal(attest())).toMatchObject({ reason: "REVIEW_PENDING", metadata: { review: reviewId } });
  const { review } = await platform.reviews.getReview({ reviewId }, asCaller(delegator));
  expect(review?.content).toEqual(value("look"));
  expect(
    await refusal(
      platform.reviews.decideReview({ reviewId, verdict: ReviewVerdict.APPROVED }, asCaller(worker)),
    ),
  ).toMatchObject({ reason: "REVIEW_NOT_FOUND" });
  await platform.reviews.decideReview({ reviewId, verdict: ReviewVerdict.APPROVED }, asCaller(delegator));
  expect((await check(contractId, "look")).result).toMatchObject({ passed: true, score: 1 });
  expect((await attest()).attestation?.result?.verificationOutcome).toMatchObject({
    method: "human_review",
    passed: true,
  });
});

test("a rejected output has not passed", async () => {
  const contractId = await agree({ method: "human_review" });
  const { reviewId } = await check(contractId);
  const decision = { reviewId, verdict: ReviewVerdict.REJECTED, reason: "wrong" };
  await platform.reviews.decideReview(decision, asCaller(delegator));
  expect((await check(contractId)).result).toMatchObject({ passed: false, details: "rejected: wrong" });
});

test("after a time-out the model decides if the contract has a rubric", async () => {
  const rubric = { judgePrompt: "{output} {contract}", passThreshold: 0.5, evaluations: 1 };
  const withModel = await agree({ method: "human_review", ...rubric });
  const without = await agree({ method: "human_review" });
  const [first, second] = [await check(withModel), await check(without)];
  platform.clock.advance(24 * 3_600_000);
  model.answer(0.6);
  expect((await check(withModel)).result).toMatchObject({ passed: true, score: 0.6 });
  expect((await check(without)).result).toMatchObject({ passed: false, score: 0 });
  for (const { reviewId } of [first, second]) {
    const { review } = await platform.reviews.getReview({ reviewId });
    expect(review?.state).toBe(ReviewState.TIMED_OUT);
  }
});
