import { create } from "@bufbuild/protobuf";
import { type Duration, durationFromMs, durationMs } from "@bufbuild/protobuf/wkt";
import {
  type RetryPolicy,
  type Task,
  type TaskLimits,
  TaskLimitsSchema,
  TaskStatus,
} from "@depute/contracts/depute/tasks/v1/task_pb";
import { fromTimestamp } from "@depute/core";
import type { Hold, TaskRecord } from "./record.ts";
import { isHeld, isTerminal } from "./state-machine.ts";

const HOUR_MS = 3_600_000;

/** The total limit, in milliseconds, of a task whose draft states none. */
export const DEFAULT_TOTAL_MS = HOUR_MS;

/** Maximum total limit of a task, in milliseconds. */
export const MAX_TOTAL_MS = 30 * 24 * HOUR_MS;

/** The heartbeat limit, in milliseconds, of a task whose draft states none. */
export const DEFAULT_HEARTBEAT_MS = 30_000;

/** The maximum number of attempts of a task whose retry policy states no number. */
export const DEFAULT_MAX_ATTEMPTS = 3;

/**
 * The kinds of limits. The limit with the earliest time applies; of several limits with the same time, the first one in
 * this order.
 */
export type Limit = "cancellation" | "total" | "start" | "queue" | "context" | "attempt" | "heartbeat";

export interface Deadline {
  readonly limit: Limit;
  /** The time at which the limit passes, in epoch milliseconds. */
  readonly atMs: number;
}

/** The limits of a task that are durations: total, queue, attempt and heartbeat, in milliseconds. */
export type LimitsMs = Readonly<Record<Exclude<Limit, "start" | "cancellation" | "context">, number>>;

/**
 * Returns the limits in force: total, queue, attempt and heartbeat are all set. The queue and attempt limits default to
 * the total limit and cannot exceed it.
 *
 * @param availableMs upper bound of the total limit: milliseconds until the deadline of the contract or the parent
 */
export function limitsInForce(
  askedLimits: TaskLimits | undefined,
  availableMs = Number.POSITIVE_INFINITY,
): TaskLimits {
  const total = Math.min(ms(askedLimits?.total) ?? DEFAULT_TOTAL_MS, availableMs);
  return create(TaskLimitsSchema, {
    total: durationFromMs(total),
    queue: durationFromMs(Math.min(ms(askedLimits?.queue) ?? total, total)),
    attempt: durationFromMs(Math.min(ms(askedLimits?.attempt) ?? total, total)),
    heartbeat: durationFromMs(ms(askedLimits?.heartbeat) ?? DEFAULT_HEARTBEAT_MS),
  });
}

/** Returns the maximum number of attempts of a task with this retry policy. */
export function maxAttempts(policy: RetryPolicy | undefined): number {
  return policy === undefined || policy.maxAttempts === 0 ? DEFAULT_MAX_ATTEMPTS : policy.maxAttempts;
}

/** Returns the total, queue, attempt and heartbeat limits of a stored task. */
export function limitsMs(task: Task): LimitsMs {
  const { total, queue, attempt, heartbeat } = task.limits ?? {};
  const totalMs = ms(total) ?? DEFAULT_TOTAL_MS;
  return {
    total: totalMs,
    queue: ms(queue) ?? totalMs,
    attempt: ms(attempt) ?? totalMs,
    heartbeat: ms(heartbeat) ?? DEFAULT_HEARTBEAT_MS,
  };
}

/** Returns the interval in which a worker must send heartbeats: a third of the heartbeat limit, in milliseconds. */
export function heartbeatIntervalMs(task: Task): number {
  return Math.floor(limitsMs(task).heartbeat / 3);
}

/** Returns the next deadline of a task in its present status; undefined once the task has ended. */
export function nextDeadline(record: TaskRecord): Deadline | undefined {
  const { task, hold } = record;
  if (isTerminal(task.status)) return undefined;
  const candidates: Deadline[] = [];
  if (task.cancellation?.expireTime !== undefined) {
    candidates.push({ limit: "cancellation", atMs: fromTimestamp(task.cancellation.expireTime) });
  }
  if (task.expireTime !== undefined) {
    candidates.push({ limit: "total", atMs: fromTimestamp(task.expireTime) });
  }
  if (task.startExpireTime !== undefined) {
    candidates.push({ limit: "start", atMs: fromTimestamp(task.startExpireTime) });
  }
  if (task.status === TaskStatus.PENDING) {
    candidates.push({ limit: "queue", atMs: record.queuedMs + limitsMs(task).queue });
    // The expiry of a context ends only a task that no worker has had. Of any other task, the next dispatch checks the
    // contexts, see `claim.ts`.
    if (record.epoch === 0 && record.contextExpireMs !== undefined) {
      candidates.push({ limit: "context", atMs: record.contextExpireMs });
    }
  }
  if (isHeld(task.status) && hold !== undefined) {
    // While the worker waits for an answer, the attempt's limit does not apply.
    if (task.status !== TaskStatus.INPUT_REQUIRED) {
      candidates.push({ limit: "attempt", atMs: hold.attemptDeadlineMs });
    }
    candidates.push({ limit: "heartbeat", atMs: hold.leaseExpireMs });
  }
  return candidates.reduce<Deadline | undefined>(
    (first, next) => (first === undefined || next.atMs < first.atMs ? next : first),
    undefined,
  );
}

/**
 * Returns the time by which the work must end, in epoch milliseconds. This is the earliest end of the attempt, the
 * task, and a cancellation's grace period.
 */
export function workDeadlineMs({ expireTime, cancellation }: Task, { attemptDeadlineMs }: Hold): number {
  const times = [expireTime, cancellation?.expireTime].map((time) =>
    time === undefined ? attemptDeadlineMs : fromTimestamp(time),
  );
  return Math.min(attemptDeadlineMs, ...times);
}

/**
 * Returns the limits of a task whose deadline moves. A queue or attempt limit that equals the total limit gets the new
 * total limit. A shorter queue or attempt limit stays, but becomes at most the new total limit.
 *
 * @param totalMs the new total limit, in milliseconds from the task's creation
 */
export function movedLimits(task: Task, totalMs: number): TaskLimits {
  const before = limitsMs(task);
  const moved = (limit: number) => durationFromMs(limit >= before.total ? totalMs : Math.min(limit, totalMs));
  return create(TaskLimitsSchema, {
    total: durationFromMs(totalMs),
    queue: moved(before.queue),
    attempt: moved(before.attempt),
    heartbeat: durationFromMs(before.heartbeat),
  });
}

/** Returns the next deadline if it has passed; otherwise undefined. */
export function passedDeadline(record: TaskRecord, nowMs: number): Deadline | undefined {
  const next = nextDeadline(record);
  return next !== undefined && next.atMs <= nowMs ? next : undefined;
}

function ms(duration: Duration | undefined): number | undefined {
  return duration === undefined ? undefined : Math.max(1, durationMs(duration));
}
