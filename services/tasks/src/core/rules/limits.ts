import { create } from "@bufbuild/protobuf";
import { type Duration, durationFromMs, durationMs } from "@bufbuild/protobuf/wkt";
import {
  type Task,
  type TaskLimits,
  TaskLimitsSchema,
  TaskStatus,
} from "@depute/contracts/depute/tasks/v1/task_pb";
import { fromTimestamp } from "@depute/core";
import type { Hold, TaskRecord } from "./record.ts";
import { isHeld, isTerminal } from "./state-machine.ts";

const HOUR_MS = 3_600_000;

/** The total limit of a task that names none. */
export const DEFAULT_TOTAL_MS = HOUR_MS;

/** The longest time that a task may take. */
export const MAX_TOTAL_MS = 30 * 24 * HOUR_MS;

/** The heartbeat limit of a task that names none. */
export const DEFAULT_HEARTBEAT_MS = 30_000;

/** The limits, in the order in which they are looked at when several have passed. */
export type Limit = "cancellation" | "total" | "start" | "queue" | "context" | "attempt" | "heartbeat";

export interface Deadline {
  readonly limit: Limit;
  /** Epoch milliseconds; at this moment it has passed. */
  readonly atMs: number;
}

/** The limits of a task that say how long something may take, in milliseconds. */
export type LimitsMs = Readonly<Record<Exclude<Limit, "start" | "cancellation" | "context">, number>>;

/**
 * The limits in force, all four set: queue and attempt default to the whole task's and cannot outlast it.
 *
 * @param availableMs how long the whole task may take at most, for a reason other than its own limits
 */
export function limitsInForce(
  asked: TaskLimits | undefined,
  availableMs = Number.POSITIVE_INFINITY,
): TaskLimits {
  const total = Math.min(ms(asked?.total) ?? DEFAULT_TOTAL_MS, availableMs);
  return create(TaskLimitsSchema, {
    total: durationFromMs(total),
    queue: durationFromMs(Math.min(ms(asked?.queue) ?? total, total)),
    attempt: durationFromMs(Math.min(ms(asked?.attempt) ?? total, total)),
    heartbeat: durationFromMs(ms(asked?.heartbeat) ?? DEFAULT_HEARTBEAT_MS),
  });
}

/** The limits of a stored task, which has all four. */
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

/** How often a worker has to say that it lives: a third of its limit, in milliseconds. */
export function heartbeatIntervalMs(task: Task): number {
  return Math.floor(limitsMs(task).heartbeat / 3);
}

/** The deadline that a task meets next in the status that it is in; undefined once it has ended. */
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
    // What a worker had once may go on at its endpoint without the context, see `claim.ts`.
    if (record.epoch === 0 && record.contextExpireMs !== undefined) {
      candidates.push({ limit: "context", atMs: record.contextExpireMs });
    }
  }
  if (isHeld(task.status) && hold !== undefined) {
    // Whoever waits for an answer does not use up its time.
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

/** When the attempt, or the whole task, has taken too long, or what was called off has to be over; epoch milliseconds. */
export function workDeadlineMs({ expireTime, cancellation }: Task, { attemptDeadlineMs }: Hold): number {
  const times = [expireTime, cancellation?.expireTime].map((time) =>
    time === undefined ? attemptDeadlineMs : fromTimestamp(time),
  );
  return Math.min(attemptDeadlineMs, ...times);
}

/**
 * The limits of a task that is to end at another time: those for queue and attempt that were as long as the total one go
 * along with it, and none is longer.
 *
 * @param totalMs from the task's creation
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

/** The deadline that has passed at a time, if one has. */
export function passedDeadline(record: TaskRecord, nowMs: number): Deadline | undefined {
  const next = nextDeadline(record);
  return next !== undefined && next.atMs <= nowMs ? next : undefined;
}

function ms(duration: Duration | undefined): number | undefined {
  return duration === undefined ? undefined : Math.max(1, durationMs(duration));
}
