import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { ShiftedClock } from "../agenta/clock.ts";
import { startPlatform } from "../gateway/platform.ts";
import { type Cast, example, type Json, keyOf, startCast } from "./cast.ts";

/** The limit is generous, because test machines may be busy. */
const SOON = { timeout: 15_000 };
const HOUR_MS = 3_600_000;

const clock = new ShiftedClock();
let cast: Cast;
beforeAll(async () => {
  cast = await startCast(["--tasks-review-timeout", "10h"], (args) => startPlatform(args, { clock }));
});
afterAll(() => cast.stop());

/** Calls the verifier's ReviewService in JSON as one of the agents. */
const call = (id: string, method: string, body: object) =>
  cast.as(id).ask("POST", `/depute.verifier.v1.ReviewService/${method}`, body);
const listed = async (id: string): Promise<Json[]> =>
  (await call(id, "ListReviews", { state: "REVIEW_STATE_PENDING", kind: "REVIEW_KIND_OVERSIGHT" })).body
    .reviews ?? [];
const all = (task: Json): Json[] => [task, ...task.tasks.flatMap(all)];
const statusOf = async (id: string) =>
  all(await cast.as("orchestrator").lineage(id.split(".")[0] ?? "")).find(({ task_id }) => task_id === id)
    .status;
const reasonOf = ({ body }: Json) => body.details?.[0]?.debug?.reason ?? body.code;

/** Makes analyst-1 submit a result that waits for the overseer qa-1. The delegator is pm-1. */
async function heldTask(root: string): Promise<Json> {
  for (const name of ["01-delegation-to-pm", "04-delegation-to-analyst", "07-delegation-to-qa"]) {
    const message: Json = example(`example-${name}`);
    const task_id = message.task_id.replace(/^T1/, root);
    const answer = await cast.as(message.sender_id).send({ ...message, task_id });
    expect(answer.status).toBe(201);
  }
  expect(await statusOf(`${root}.1`)).toBe("in_review");
  await expect.poll(() => listed("qa-1"), SOON).toHaveLength(1);
  return (await listed("qa-1"))[0];
}

describe("the review of a held result", () => {
  test("is visible to its overseer only", async () => {
    const review = await heldTask("H1");
    expect(review).toMatchObject({ author: keyOf("analyst-1"), reviewers: [keyOf("qa-1")] });
    const { id } = review;
    const approval = { review_id: id, verdict: "REVIEW_VERDICT_APPROVED" };
    for (const stranger of ["pm-1", "stranger-1", "user", "orchestrator"]) {
      expect(await listed(stranger)).toEqual([]);
      expect(reasonOf(await call(stranger, "GetReview", { review_id: id }))).toBe("REVIEW_NOT_FOUND");
      expect(reasonOf(await call(stranger, "DecideReview", approval))).toBe("REVIEW_NOT_FOUND");
      const approvalByQa = { ...approval, reviewer: keyOf("qa-1") };
      expect(reasonOf(await call(stranger, "DecideReview", approvalByQa))).toBe("CALLER_NOT_ALLOWED");
    }
    expect(reasonOf(await call("analyst-1", "GetReview", { review_id: id }))).toBe("REVIEW_NOT_FOUND");
    expect(reasonOf(await call("analyst-1", "DecideReview", approval))).toBe("CONFLICT_OF_INTEREST");
    expect(await statusOf("H1.1")).toBe("in_review");

    expect((await call("qa-1", "DecideReview", approval)).body.review.state).toBe("REVIEW_STATE_APPROVED");
    await expect.poll(() => statusOf("H1.1"), SOON).toBe("completed");
    expect((await call("qa-1", "DecideReview", approval)).status).toBe(200);
    const other = { ...approval, verdict: "REVIEW_VERDICT_REJECTED", reason: "no" };
    expect(reasonOf(await call("qa-1", "DecideReview", other))).toBe("REVIEW_CLOSED");
  });

  test.each([
    ["REVIEW_VERDICT_CHANGES_REQUESTED", "pending"],
    ["REVIEW_VERDICT_REJECTED", "failed"],
  ])("moves the task on by %s", async (verdict, status) => {
    const root = `H2-${status}`;
    const { id } = await heldTask(root);
    await call("qa-1", "DecideReview", { review_id: id, verdict, reason: "the totals" });
    await expect.poll(() => statusOf(`${root}.1`), SOON).toBe(status);
  });

  test("is not decided at the tasks service", async () => {
    for (const method of ["ListReviews", "DecideReview"]) {
      const { status } = await cast.as("qa-1").ask("POST", `/depute.tasks.v1.TaskService/${method}`, {});
      expect(status).toBe(404);
    }
  });

  test("is also sent to the orchestrator after half of its time, with one notice", async () => {
    const { id } = await heldTask("H3");
    clock.skip(5 * HOUR_MS);
    const noticesTold = async () =>
      (await cast.as("orchestrator").inbox("?limit=1000")).messages.filter(
        ({ message }: Json) => message.task_id === "H3.1" && message.error_code === 408,
      );
    await expect.poll(noticesTold, SOON).toHaveLength(1);
    expect(await listed("pm-1")).toEqual([]);
    const { body } = await call("orchestrator", "DecideReview", {
      review_id: id,
      verdict: "REVIEW_VERDICT_APPROVED",
    });
    expect(body.review).toMatchObject({ decidedBy: "the-orchestrator", escalated: true });
    await expect.poll(() => statusOf("H3.1"), SOON).toBe("completed");
    expect(await noticesTold()).toHaveLength(1);
  });

  test("fails the task at its deadline", async () => {
    const { id } = await heldTask("H4");
    clock.skip(10 * HOUR_MS);
    await expect.poll(() => statusOf("H4.1"), SOON).toBe("failed");
    const { body } = await call("qa-1", "GetReview", { review_id: id });
    expect(body.review.state).toBe("REVIEW_STATE_TIMED_OUT");
  });
});
