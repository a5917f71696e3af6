import { type Timestamp, timestampMs } from "@bufbuild/protobuf/wkt";
import { type Task, TaskStatus } from "@depute/contracts/depute/tasks/v1/task_pb";
import { statusFacts } from "./task-status.ts";

export interface Ranked {
  readonly name: string;
  readonly value: number;
}

/**
 * The figures of the overview. The element of each list by minute belongs to the element of `minutes` at the same
 * index.
 */
export interface Tally {
  /** For each status, the number of open tasks. */
  readonly open: Readonly<Partial<Record<TaskStatus, number>>>;
  /** The start of each minute in epoch seconds. */
  readonly minutes: readonly number[];
  readonly created: readonly number[];
  readonly completed: readonly number[];
  readonly failed: readonly number[];
  /**
   * For each minute, the median time from creation to completion in seconds; null if no task was completed in that
   * minute.
   */
  readonly latency: readonly (number | null)[];
  /** For each minute, the total cost from the start of the period to the end of that minute, in US dollars. */
  readonly spend: readonly number[];
  /** Average number of tasks that ended per minute in the last five minutes. */
  readonly endedPerMinute: number;
  readonly medianMs: number | undefined;
  readonly p95Ms: number | undefined;
  /** The total cost of the period in microcents. */
  readonly spent: number;
  readonly queue: readonly Ranked[];
  readonly reasons: readonly Ranked[];
  /** The cost of each agent in microcents. */
  readonly spendByAgent: readonly Ranked[];
}

const MINUTE_MS = 60_000;
const MICROCENTS_PER_DOLLAR = 100_000_000;
const MAX_RANKED = 10;
const RATE_MINUTES = 5;

/** Computes the figures of the overview from the caller's tasks. */
export function tallyOf(
  open: readonly Task[],
  recent: readonly Task[],
  { nowMs, windowMs }: { readonly nowMs: number; readonly windowMs: number },
): Tally {
  const count = Math.round(windowMs / MINUTE_MS);
  const first = (Math.floor(nowMs / MINUTE_MS) - count + 1) * MINUTE_MS;
  const minutes = Array.from({ length: count }, (_, index) => first + index * MINUTE_MS);
  const minuteOf = (time: Timestamp | undefined) =>
    time === undefined ? -1 : Math.floor((timestampMs(time) - first) / MINUTE_MS);
  const zeros = () => minutes.map(() => 0);
  const [created, completed, failed, costs] = [zeros(), zeros(), zeros(), zeros()];
  const latencies: number[][] = minutes.map(() => []);
  const count1 = (list: number[], index: number, by = 1) => {
    if (index >= 0 && index < list.length) list[index] = (list[index] ?? 0) + by;
  };
  for (const task of recent) {
    count1(created, minuteOf(task.createTime));
    const end = minuteOf(task.endTime);
    if (end < 0) continue;
    count1(costs, end, costOf(task));
    count1(task.status === TaskStatus.COMPLETED ? completed : failed, end);
    if (task.status === TaskStatus.COMPLETED) latencies[end]?.push(latencyOf(task));
  }
  const all = latencies.flat();
  const ended = completed.map((value, index) => value + (failed[index] ?? 0));
  let sum = 0;
  return {
    open: countBy(open, ({ status }) => status),
    minutes: minutes.map((ms) => ms / 1_000),
    created,
    completed,
    failed,
    latency: latencies.map((each) => (each.length === 0 ? null : (quantile(each, 0.5) ?? 0) / 1_000)),
    spend: costs.map((cost) => {
      sum += cost;
      return sum / MICROCENTS_PER_DOLLAR;
    }),
    endedPerMinute: ended.slice(-RATE_MINUTES).reduce((one, other) => one + other, 0) / RATE_MINUTES,
    medianMs: quantile(all, 0.5),
    p95Ms: quantile(all, 0.95),
    spent: costs.reduce((one, other) => one + other, 0),
    queue: ranked(
      open.filter(({ status }) => status === TaskStatus.PENDING),
      ({ agentId }) => agentId,
    ),
    reasons: ranked(
      recent.filter(isWithoutResult),
      ({ failure, status }) => failure?.reason || statusFacts(status).label,
    ),
    spendByAgent: ranked(recent, ({ agentId }) => agentId, costOf),
  };
}

function isWithoutResult({ status }: Task): boolean {
  return !statusFacts(status).isOpen && status !== TaskStatus.COMPLETED;
}

function costOf({ usage }: Task): number {
  return Number(usage?.costMicrocents ?? 0n);
}

function latencyOf({ createTime, endTime }: Task): number {
  return createTime === undefined || endTime === undefined
    ? 0
    : timestampMs(endTime) - timestampMs(createTime);
}

function countBy(
  tasks: readonly Task[],
  keyOf: (task: Task) => TaskStatus,
): Partial<Record<TaskStatus, number>> {
  const counts: Partial<Record<TaskStatus, number>> = {};
  for (const task of tasks) counts[keyOf(task)] = (counts[keyOf(task)] ?? 0) + 1;
  return counts;
}

function ranked(
  tasks: readonly Task[],
  nameOf: (task: Task) => string,
  weigh: (task: Task) => number = () => 1,
) {
  const sums = new Map<string, number>();
  for (const task of tasks) sums.set(nameOf(task), (sums.get(nameOf(task)) ?? 0) + weigh(task));
  return [...sums]
    .map(([name, value]) => ({ name, value }))
    .filter(({ value }) => value > 0)
    .sort((one, other) => other.value - one.value)
    .slice(0, MAX_RANKED);
}

function quantile(values: readonly number[], share: number): number | undefined {
  const sorted = [...values].sort((one, other) => one - other);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))];
}
