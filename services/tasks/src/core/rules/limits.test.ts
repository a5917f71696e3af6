import { TaskStatus } from "@depute/contracts/depute/tasks/v1/task_pb";
import { ManualClock } from "@depute/core";
import { describe, expect, test } from "vitest";
import { ADMISSION, accepted, draftOf, limits, pending, started, T0 } from "../../testing/tasks.ts";
import { advanceByTime, extendLease } from "./advance.ts";
import { heartbeatIntervalMs, limitsInForce, limitsMs, nextDeadline, passedDeadline } from "./limits.ts";
import { newTask } from "./new-task.ts";
import { statusName } from "./state-machine.ts";

const HOUR = 3_600_000;

describe("limits in force", () => {
  test("are an hour by default, except the heartbeat", () => {
    const { task } = pending();
    expect(limitsMs(task)).toEqual({ total: HOUR, queue: HOUR, attempt: HOUR, heartbeat: 30_000 });
    expect(heartbeatIntervalMs(task)).toBe(10_000);
  });

  test.each([
    [{ total: 5000 }, undefined, { total: 5000, queue: 5000, attempt: 5000, heartbeat: 30_000 }],
    [
      { total: 5000, queue: 100, attempt: 200, heartbeat: 1000 },
      undefined,
      { total: 5000, queue: 100, attempt: 200, heartbeat: 1000 },
    ],
    [{ total: 5000, queue: 9000 }, undefined, { total: 5000, queue: 5000, attempt: 5000, heartbeat: 30_000 }],
    [{}, 60_000, { total: 60_000, queue: 60_000, attempt: 60_000, heartbeat: 30_000 }],
    [{ total: 5000 }, 60_000, { total: 5000, queue: 5000, attempt: 5000, heartbeat: 30_000 }],
  ])("%o with %s ms available", (askedLimits, available, inForce) => {
    const { task } = pending({ limits: limitsInForce(limits(askedLimits), available) });
    expect(limitsMs(task)).toEqual(inForce);
  });
});

const at = (nowMs: number) => ({ nowMs, random: () => 0 });

describe("the next deadline of a task", () => {
  const all = limits({ total: 10_000, queue: 3000, attempt: 4000, heartbeat: 1000 });

  test("that waits for its first worker is the expiry of a context that it carries", () => {
    const carried = { inputId: "c", expireMs: T0 + 2000 };
    const { record } = newTask("t1", draftOf({ limits: all }), ADMISSION, T0, undefined, carried);
    expect(nextDeadline(record)).toEqual({ limit: "context", atMs: T0 + 2000 });
    const { task } = advanceByTime(record, at(T0 + 2000)).record;
    expect([statusName(task.status), task.failure?.reason]).toEqual(["expired", "CONTEXT_EXPIRED"]);
    // The context's expiry does not limit a task that a worker already has.
    expect(nextDeadline(accepted(record, T0 + 500))?.limit).toBe("heartbeat");
  });

  test("that waits is its queue limit, from the moment it was queued", () => {
    expect(nextDeadline(pending({ limits: all }))).toEqual({ limit: "queue", atMs: T0 + 3000 });
    const requeued = advanceByTime(accepted(pending({ limits: all }), T0 + 500), at(T0 + 1500)).record;
    expect(statusName(requeued.task.status)).toBe("pending");
    expect(nextDeadline(requeued)).toEqual({ limit: "queue", atMs: T0 + 4500 });
  });

  test("that a worker holds is its heartbeat, then its attempt, then its end", () => {
    let leasedRecord = started(accepted(pending({ limits: all }), T0 + 500), T0 + 600);
    expect(nextDeadline(leasedRecord)).toEqual({ limit: "heartbeat", atMs: T0 + 1500 });
    leasedRecord = extendLease(leasedRecord, T0 + 3700);
    expect(nextDeadline(leasedRecord)).toEqual({ limit: "attempt", atMs: T0 + 4500 });
    const late = extendLease(accepted(pending({ limits: all }), T0 + 9800), T0 + 9900);
    expect(nextDeadline(late)).toEqual({ limit: "total", atMs: T0 + 10_000 });
  });

  test("is passed at its exact millisecond", () => {
    const task = pending({ limits: all });
    expect(passedDeadline(task, T0 + 2999)).toBeUndefined();
    expect(passedDeadline(task, T0 + 3000)).toEqual({ limit: "queue", atMs: T0 + 3000 });
  });
});

describe("a task with a latest start", () => {
  const waiting = newTask("t1", draftOf(), { ...ADMISSION, startByMs: T0 + 5000 }, T0).record;

  test("expires if it has not started by then", () => {
    const acceptedTask = accepted(waiting, T0);
    for (const record of [waiting, extendLease(acceptedTask, T0 + 4000)]) {
      expect(nextDeadline(record)).toEqual({ limit: "start", atMs: T0 + 5000 });
      expect(advanceByTime(record, at(T0 + 5000)).record.task.status).toBe(TaskStatus.EXPIRED);
    }
  });

  test("keeps its other limits after the start, also for later attempts", () => {
    const begun = started(accepted(waiting, T0), T0 + 4999);
    const { record, events } = advanceByTime(begun, at(T0 + 30_000));
    expect(events.map(({ status }) => status)).toEqual([TaskStatus.PENDING]);
    expect(nextDeadline(record)?.atMs).toBeGreaterThan(T0 + 30_000);
  });
});

describe("the time limits", () => {
  const clock = new ManualClock(T0);
  const short = limits({ total: 10_000, queue: 3000, attempt: 4000, heartbeat: 1000 });

  test.each([
    [
      "the queue limit expires a waiting task",
      () => pending({ limits: short }),
      3000,
      ["expired"],
      "TASK_TIMEOUT",
    ],
    [
      "the heartbeat timeout requeues the task of a silent worker",
      () => accepted(pending({ limits: short }), T0),
      1000,
      ["pending"],
      undefined,
    ],
    [
      "the heartbeat timeout fails the last attempt",
      () => accepted(pending({ limits: short, retry: { maxAttempts: 1 } }), T0),
      1000,
      ["failed"],
      "LEASE_LOST",
    ],
    [
      "the attempt limit fails the last attempt",
      () =>
        extendLease(
          started(accepted(pending({ limits: short, retry: { maxAttempts: 1 } }), T0), T0),
          T0 + 3500,
        ),
      4000,
      ["failed"],
      "TASK_TIMEOUT",
    ],
    [
      "a missed heartbeat and a passed total limit expire the task",
      () => accepted(pending({ limits: short }), T0),
      10_000,
      ["pending", "expired"],
      "TASK_TIMEOUT",
    ],
    ["a limit has no effect before its time", () => pending({ limits: short }), 2999, [], undefined],
  ])("%s", (_name, record, afterMs, statuses, reason) => {
    const { record: after, events } = advanceByTime(record(), at(clock.now() + afterMs));
    expect(events.map((event) => statusName(event.status))).toEqual(statuses);
    expect(after.task.failure?.reason).toBe(reason);
  });
});
