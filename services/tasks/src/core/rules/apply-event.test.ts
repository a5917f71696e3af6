import { create } from "@bufbuild/protobuf";
import {
  TaskCancelledSchema,
  TaskCompletedSchema,
  TaskEventSchema,
} from "@depute/contracts/depute/tasks/v1/task_event_pb";
import { TaskProgressSchema, TaskStatus } from "@depute/contracts/depute/tasks/v1/task_pb";
import { fromTimestamp } from "@depute/core";
import { describe, expect, test } from "vitest";
import { accepted, pending, started, T0 } from "../../testing/tasks.ts";
import { advance } from "./advance.ts";
import { applyEvent, failureOf, nextEvent } from "./apply-event.ts";
import { maxAttempts } from "./limits.ts";
import { afterFailedAttempt, afterRelease } from "./retry.ts";

const cancelled = { case: "cancelled", value: create(TaskCancelledSchema, { reason: "enough" }) } as const;
const progress = { case: "progress", value: create(TaskProgressSchema, { processed: 1 }) } as const;
const completed = { case: "completed", value: create(TaskCompletedSchema, {}) } as const;
const rejected = { case: "rejected", value: failureOf("BUSY", "") } as const;

const NOW = { nowMs: T0, random: () => 0 };

describe("the application of an event", () => {
  test("numbers events from 1, with times that never decrease", () => {
    const { task } = accepted(pending(), T0 - 5000);
    expect(task.lastSequence).toBe(2n);
    expect(task.updateTime && fromTimestamp(task.updateTime)).toBe(T0);
  });

  test("with a terminal status sets the end time and the cause", () => {
    const { task } = advance(pending(), { payload: cancelled, by: "delegator" }, T0 + 7).record;
    expect(task.endTime && fromTimestamp(task.endTime)).toBe(T0 + 7);
    expect(task.failure).toMatchObject({ reason: "CANCELLED", message: "enough" });
  });

  test("after a terminal event is refused", () => {
    const { record } = advance(pending(), { payload: cancelled, by: "delegator" }, T0);
    for (const payload of [cancelled, progress, rejected]) {
      expect(() => nextEvent(record.task, payload, "worker", T0)).toThrow("cannot become");
    }
  });

  test.each([
    ["a gap", { sequence: 3n }],
    ["a repeated event", { sequence: 1n }],
    ["another task's event", { taskId: "t2" }],
    ["an empty event", { payload: { case: undefined } }],
  ] as const)("refuses %s", (_name, change) => {
    const { task } = pending();
    const event = nextEvent(task, cancelled, "delegator", T0);
    expect(applyEvent(task, event).status).toBe(TaskStatus.CANCELLED);
    expect(() => applyEvent(task, create(TaskEventSchema, { ...event, ...change }))).toThrow();
  });

  test.each([
    ["progress before the start", () => accepted(pending(), T0), progress, "worker"],
    ["progress by a delegator", () => started(accepted(pending(), T0), T0), progress, "delegator"],
    ["a rejection after the start", () => started(accepted(pending(), T0), T0), rejected, "worker"],
    ["a cancellation by a worker", () => pending(), cancelled, "worker"],
    ["a result before the start", () => accepted(pending(), T0), completed, "worker"],
  ] as const)("refuses %s", (_name, record, payload, by) => {
    expect(() => advance(record(), { payload, by }, T0)).toThrow("cannot become");
  });

  test("names the missing call when it refuses a result before the start", () => {
    const step = { payload: completed, by: "worker" } as const;
    expect(() => advance(accepted(pending(), T0), step, T0)).toThrow("StartAssignment");
  });

  test("accepts an execution's result without a start", () => {
    const { task, ...rest } = accepted(pending(), T0);
    const execution = { ...rest, task: { ...task, executionRequestId: "request-1" } };
    const { record } = advance(execution, { payload: completed, by: "worker" }, T0);
    expect(record.task.status).toBe(TaskStatus.COMPLETED);
    expect(record.hold).toBeUndefined();
  });
});

describe("attempts", () => {
  test.each([
    [undefined, 3],
    [0, 3],
    [1, 1],
    [7, 7],
  ])("a policy of %s allows %d attempts", (policyText, attempts) => {
    expect(
      maxAttempts(pending(policyText === undefined ? {} : { retry: { maxAttempts: policyText } }).task.retry),
    ).toBe(attempts);
  });

  test.each([
    [true, 1, 2, "requeued"],
    [true, 2, 2, "failed"],
    [false, 1, 2, "failed"],
  ])("retryable %s, attempt %d of %d: %s", (retryable, attempt, attempts, payload) => {
    const task = { ...pending({ retry: { maxAttempts: attempts } }).task, attempt };
    expect(afterFailedAttempt(task, failureOf("BROKEN", "", retryable), NOW).case).toBe(payload);
  });

  test("a released assignment does not count as an attempt", () => {
    const acceptedTask = accepted(pending(), T0);
    expect(acceptedTask.task.attempt).toBe(1);
    const { record } = advance(acceptedTask, { payload: afterRelease(acceptedTask.task), by: "worker" }, T0);
    expect(record.task.attempt).toBe(0);
    expect(record.hold).toBeUndefined();
    expect(accepted(record, T0)).toMatchObject({ epoch: 2, task: { attempt: 1 } });
  });
});
