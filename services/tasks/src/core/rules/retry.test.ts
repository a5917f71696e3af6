import { durationFromMs } from "@bufbuild/protobuf/wkt";
import { fromTimestamp } from "@depute/core";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { accepted, pending, started, T0 } from "../../testing/tasks.ts";
import { advance } from "./advance.ts";
import { failureOf } from "./apply-event.ts";
import { nextDeadline } from "./limits.ts";
import { afterFailedAttempt, afterRelease, backoffMs } from "./retry.ts";

const NOW = { nowMs: T0, random: () => 0 };
const retry = (policy: { initialMs?: number; maxMs?: number; factor?: number; jitter?: number }) =>
  pending({
    retry: {
      ...(policy.initialMs === undefined ? {} : { initialBackoff: durationFromMs(policy.initialMs) }),
      ...(policy.maxMs === undefined ? {} : { maxBackoff: durationFromMs(policy.maxMs) }),
      backoffFactor: policy.factor ?? 0,
      jitter: policy.jitter ?? 0,
    },
  }).task.retry;

describe("the wait before another attempt", () => {
  test.each([
    ["is zero without a backoff", {}, 5, 0],
    ["is the initial wait for the first retry", { initialMs: 1000 }, 1, 1000],
    ["doubles by default", { initialMs: 1000 }, 3, 4000],
    ["grows by the factor of the policy", { initialMs: 1000, factor: 3 }, 3, 9000],
    ["is constant with the factor 1", { initialMs: 1000, factor: 1 }, 9, 1000],
    ["is at most the maximum of the policy", { initialMs: 1000, maxMs: 5000 }, 9, 5000],
    ["is at most an hour by default", { initialMs: 1000 }, 100, 3_600_000],
  ])("%s", (_name, policy, attempt, waitMs) => {
    expect(backoffMs(retry(policy), attempt, () => 0.5)).toBe(waitMs);
  });

  test("the jitter of the policy is a random part that only shortens the wait", () => {
    expect(backoffMs(retry({ initialMs: 1000, jitter: 0.5 }), 1, () => 0.5)).toBe(750);
    fc.assert(
      fc.property(
        fc.double({ min: 0, max: 1, noNaN: true }),
        fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true }),
        fc.integer({ min: 1, max: 100 }),
        (jitter, chance, attempt) => {
          const backoff = backoffMs(retry({ initialMs: 1000 }), attempt, () => chance);
          const waitMs = backoffMs(retry({ initialMs: 1000, jitter }), attempt, () => chance);
          expect(waitMs).toBeLessThanOrEqual(backoff);
          expect(waitMs).toBeGreaterThanOrEqual(Math.floor(backoff * (1 - jitter)));
        },
      ),
    );
  });
});

describe("a failed attempt", () => {
  const broken = failureOf("BROKEN", "", true);

  test("gets another one after the wait, and the queue limit counts from then", () => {
    const policy = { initialBackoff: durationFromMs(7000) };
    const acceptedTask = accepted(pending({ retry: policy }), T0);
    const payload = afterFailedAttempt(acceptedTask.task, broken, NOW);
    const { record } = advance(acceptedTask, { payload, by: "worker" }, T0);
    expect(record.queuedMs).toBe(T0 + 7000);
    expect(
      payload.case === "requeued" &&
        payload.value.availableTime &&
        fromTimestamp(payload.value.availableTime),
    ).toBe(T0 + 7000);
    expect(nextDeadline(record)?.atMs).toBe(T0 + 3_600_000);
  });

  test.each([
    ["TOO_BIG", "failed"],
    ["BROKEN", "requeued"],
  ])("with %s is %s if the policy lists TOO_BIG as non-retryable", (reason, outcome) => {
    const { task } = accepted(pending({ retry: { nonRetryableReasons: ["TOO_BIG"] } }), T0);
    expect(afterFailedAttempt(task, failureOf(reason, "", true), NOW).case).toBe(outcome);
  });

  test("suspends the task without a retry if the delegator requested a suspension", () => {
    const task = { ...started(accepted(pending(), T0), T0).task, suspensionRequest: "later" };
    expect(afterFailedAttempt(task, broken, NOW)).toMatchObject({
      case: "suspended",
      value: { reason: "later", attemptCounted: true },
    });
    expect(afterRelease(task)).toMatchObject({ case: "suspended", value: { attemptCounted: false } });
    expect(afterFailedAttempt({ ...task, attempt: 3 }, broken, NOW).case).toBe("failed");
  });
});
