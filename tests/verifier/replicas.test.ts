import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { toJson } from "@bufbuild/protobuf";
import { TaskContractSchema } from "@depute/contracts/delegateos/v0/contract_pb";
import { postgresForTests } from "@depute/store/testing";
import { type FakeModel, fakeModel, signedContract, toMessage } from "@depute/verifier/testing";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { isConsistent, rootOf } from "../replicas/merkle.ts";
import { type Json, type Replica, Replicas } from "../replicas/replica.ts";

/**
 * This file tests several processes of the verifier on one Postgres database, called as JSON over HTTP. The
 * processes share only the database: no Redis runs.
 */

const postgres = await postgresForTests();
const replicas = new Replicas(postgres?.url ?? "");
afterAll(async () => {
  await postgres?.stop();
  replicas.close();
});

const LOG = "depute.verifier.v1.LogService";
const REVIEWS = "depute.verifier.v1.ReviewService";
const HEAD = Buffer.alloc(32).toString("base64");

/** Appends the n-th document of a test to the log. */
async function append(replica: Replica, n: number): Promise<number> {
  const request = {
    day: "2026-01-01",
    firstSequence: n + 1,
    lastSequence: n + 1,
    previousHead: HEAD,
    head: HEAD,
  };
  const { index, ...error } = await replica.call(`${LOG}/AppendAuditSeal`, request);
  if (error.code !== undefined) throw new Error(JSON.stringify(error));
  return Number(index ?? 0);
}

/** Returns the log's current head. */
async function headOf(replica: Replica): Promise<{ size: number; root: Buffer }> {
  const head = (await replica.call(`${LOG}/GetLogHead`, {})).head as Json;
  return { size: Number(head.treeSize ?? 0), root: Buffer.from(String(head.rootHash), "base64") };
}

/** Returns the log's leaves, in order. */
async function leavesOf(replica: Replica): Promise<{ index: number; leaf: Buffer }[]> {
  const { entries = [] } = await replica.call(`${LOG}/ListLogEntries`, { pageSize: 1000 });
  return (entries as Json[]).map(({ index, leaf }) => ({
    index: Number(index ?? 0),
    leaf: Buffer.from(String(leaf), "base64"),
  }));
}

async function consistencyOf(replica: Replica, firstSize: number, secondSize: number): Promise<Buffer[]> {
  const answer = await replica.call(`${LOG}/GetConsistencyProof`, { firstSize, secondSize });
  return ((answer.hashes ?? []) as string[]).map((hash) => Buffer.from(hash, "base64"));
}

/** Expects that every replica has the same gapless log, and that each head so far is in its history. */
async function expectOneLog(
  all: readonly Replica[],
  size: number,
  heads: readonly { size: number; root: Buffer }[] = [],
): Promise<void> {
  for (const replica of all) {
    const leaves = await leavesOf(replica);
    expect(leaves.map(({ index }) => index)).toEqual(Array.from({ length: size }, (_, n) => n));
    const head = await headOf(replica);
    expect(head.size).toBe(size);
    expect(head.root).toEqual(rootOf(leaves.map(({ leaf }) => leaf)));
    for (const before of heads) {
      const proof = await consistencyOf(replica, before.size, head.size);
      expect(isConsistent(before, head, proof)).toBe(true);
    }
  }
}

describe.skipIf(postgres === undefined)("replicas of the verifier", async () => {
  const all = postgres === undefined ? [] : await replicas.start("verifier", 3);
  const [a, b] = all as [Replica, Replica];
  afterAll(() => replicas.endAll());

  test("append to one log without gaps while all of them write", async () => {
    const at = (n: number) => all[n % 3] as Replica;
    const heads: { size: number; root: Buffer }[] = [];
    const places: number[] = [];
    for (let round = 0; round < 5; round++) {
      const numbers = Array.from({ length: 20 }, (_, i) => round * 20 + i);
      places.push(...(await Promise.all(numbers.map((n) => append(at(n), n)))));
      heads.push(await headOf(at(round)));
    }
    expect(places.toSorted((a, b) => a - b)).toEqual(Array.from({ length: 100 }, (_, n) => n));
    await expectOneLog(all, 100, heads);
  }, 60_000);

  test("append a document once, whichever replicas receive it", async () => {
    const { size } = await headOf(a);
    const places = await Promise.all(
      Array.from({ length: 9 }, (_, n) => append(all[n % 3] as Replica, 1000)),
    );
    expect(new Set(places)).toEqual(new Set([size]));
    await expectOneLog(all, size + 1);
  }, 60_000);

  test("record the escalation and the time-out of a review once", async () => {
    const request = { kind: "REVIEW_KIND_OVERSIGHT", subject: "s", title: "t", reviewers: ["desk"] };
    for (let n = 0; n < 5; n++) {
      const more = { requestId: crypto.randomUUID(), escalationReviewers: ["head"], timeout: "1s" };
      await a.call(`${REVIEWS}/CreateReview`, { ...request, ...more, escalateAfter: "0.400s" });
    }
    // Five reviews were created, then escalated, then timed out.
    const changes = await b.stream(`${REVIEWS}/WatchReviews`, {}, 15);
    expect(changes.map(({ sequence }) => Number(sequence))).toEqual(
      Array.from({ length: 15 }, (_, n) => n + 1),
    );
    await a.call(`${REVIEWS}/CreateReview`, { ...request, requestId: crypto.randomUUID() });
    const [next] = await b.stream(`${REVIEWS}/WatchReviews`, { afterSequence: 15 }, 1);
    expect(next).toMatchObject({ sequence: "16", review: { state: "REVIEW_STATE_PENDING" } });
  }, 60_000);

  test("show a decision of a review at once, and decide a review once", async () => {
    const requestId = crypto.randomUUID();
    const request = {
      requestId,
      kind: "REVIEW_KIND_OVERSIGHT",
      subject: "s",
      title: "t",
      reviewers: ["desk"],
    };
    const created = await Promise.all(
      [a, b, a, b].map((one) => one.call(`${REVIEWS}/CreateReview`, request)),
    );
    const { id: reviewId } = (created[0]?.review ?? {}) as Json;
    for (const { review } of created) expect(review).toMatchObject({ id: reviewId });
    const decide = (replica: Replica, verdict: string) =>
      replica.call(`${REVIEWS}/DecideReview`, { reviewId, reviewer: "desk", verdict, reason: verdict });
    const decisions = await Promise.all([
      decide(a, "REVIEW_VERDICT_APPROVED"),
      decide(b, "REVIEW_VERDICT_REJECTED"),
    ]);
    const [decided, ...more] = decisions.flatMap(({ review }) =>
      review === undefined ? [] : [review as Json],
    );
    expect(more).toEqual([]);
    for (const replica of [a, b]) {
      const { review } = await replica.call(`${REVIEWS}/GetReview`, { reviewId });
      expect(review).toMatchObject({ state: decided?.state, reason: decided?.reason });
    }
  }, 60_000);

  test("keep each acknowledged leaf when one of them is killed and one is stopped", async () => {
    const [killed, stopped, left] = all as [Replica, Replica, Replica];
    const places = new Map<number, number>();
    const heads = [await headOf(left)];
    const pending = Array.from({ length: 200 }, (_, i) => 2000 + i).map((n) =>
      append(n % 2 ? killed : stopped, n).then(
        (index) => void places.set(n, index),
        () => {},
      ),
    );
    await Promise.race(pending);
    stopped.pause();
    await killed.kill();
    for (let n = 3000; n < 3010; n++) places.set(n, await append(left, n));
    heads.push(await headOf(left));
    stopped.resume();
    await Promise.all(pending);
    const { size } = await headOf(left);
    expect(new Set(places.values()).size).toBe(places.size);
    await expectOneLog([left, stopped], size, heads);
    // The log gives a repeated document its first position. So each acknowledged leaf is where its answer said.
    for (const [n, index] of places) expect(await append(left, n)).toBe(index);
    expect((await headOf(stopped)).size).toBe(size);
  }, 90_000);
});

describe.skipIf(postgres === undefined)("replicas of the verifier that ask a model", () => {
  let model: FakeModel;
  let all: Replica[];

  beforeAll(async () => {
    model = await fakeModel();
    const keyFile = join(replicas.folder, "model.key");
    writeFileSync(keyFile, "secret\n");
    const url = `http://${model.host}/anthropic`;
    const price = { inputMicrocentsPerMillion: 1_000_000, outputMicrocentsPerMillion: 10_000_000 };
    const judges = [{ models: ["claude-sonnet-4-20250514"], style: "anthropic", url, keyFile, ...price }];
    const file = join(replicas.folder, "judges.json");
    writeFileSync(file, JSON.stringify(judges));
    const env = { DEPUTE_VERIFIER_JUDGES: file, DEPUTE_VERIFIER_OUTBOUND_HOSTS: model.host };
    all = await replicas.start("verifier", 3, replicas.settings(env));
  }, 180_000);
  afterAll(() => model?.stop());

  async function agree(replica: Replica): Promise<string> {
    const contract = signedContract({
      outputSchema: true as never,
      maxBudgetMicrocents: 1_000_000,
      deadline: "2036-01-01T00:00:00Z",
      verification: {
        method: "llm_judge",
        judgePrompt: "How good is {output} for {contract}?",
        passThreshold: 0.7,
        evaluations: 1,
      },
    });
    const document = toJson(TaskContractSchema, toMessage("contract", contract));
    const answer = await replica.call("depute.verifier.v1.ContractService/CreateContract", {
      contract: document,
    });
    if (answer.code !== undefined) throw new Error(JSON.stringify(answer));
    return contract.id;
  }

  const check = (replica: Replica, contractId: string) =>
    replica.call("depute.verifier.v1.VerificationService/CheckOutput", { contractId, output: "fine" });
  const untilAsked = (count: number) =>
    expect.poll(() => model.asked.length, { timeout: 20_000 }).toBe(count);

  test("ask it once for equal outputs", async () => {
    const contractId = await agree(all[0] as Replica);
    const answer = Promise.withResolvers<number>();
    model.answer(answer.promise, 0.1);
    const checks = Array.from({ length: 9 }, (_, n) => check(all[n % 3] as Replica, contractId));
    await untilAsked(1);
    // Longer than a judge claim holds that its process does not extend.
    await delay(4_000);
    answer.resolve(0.9);
    for (const { result } of await Promise.all(checks))
      expect(result).toMatchObject({ passed: true, score: 0.9 });
    expect(model.asked).toHaveLength(1);
  }, 60_000);

  test("have one result after a replica was stopped beyond its lease", async () => {
    const [stopped, left] = all as [Replica, Replica];
    const contractId = await agree(left);
    const late = Promise.withResolvers<number>();
    model.answer(late.promise, 0.8);
    const paused = check(stopped, contractId);
    await untilAsked(1);
    stopped.pause();
    expect(await check(left, contractId)).toMatchObject({ result: { score: 0.8 } });
    late.resolve(0.2);
    stopped.resume();
    expect(await paused).toMatchObject({ result: { score: 0.8 } });
    for (const replica of all)
      expect(await check(replica, contractId)).toMatchObject({ result: { score: 0.8 } });
    expect(model.asked).toHaveLength(2);
  }, 60_000);

  test("continue for a replica that is killed during its question", async () => {
    const [left, , killed] = all as [Replica, Replica, Replica];
    const contractId = await agree(left);
    model.answer("hang", 0.8);
    const lost = check(killed, contractId).catch(() => undefined);
    await untilAsked(1);
    const waiting = check(left, contractId);
    await killed.kill();
    expect(await waiting).toMatchObject({ result: { passed: true, score: 0.8 } });
    expect(await lost).toBeUndefined();
    expect(model.asked).toHaveLength(2);
  }, 60_000);
});
