import type { Client } from "@connectrpc/connect";
import type { TaskService } from "@depute/contracts/depute/tasks/v1/task_service_pb";
import type { Lease } from "@depute/contracts/depute/tasks/v1/worker_service_pb";
import { amount } from "../amount.ts";
import type { Benchmark } from "../bench.ts";
import { inFlight } from "../in-flight.ts";
import { REPORT } from "./events.ts";
import { createTask, type Platform, startBare, startPlatform, takeWork } from "./platform.ts";

/**
 * Measures the watchers of tasks: the rate, the delay and the cost with which events reach them. The clients are
 * @grpc/grpc-js, in this process.
 */

const WATCHERS = 100;
const EVENTS = amount(300);
const REPORTS_IN_FLIGHT = 32;
const TASKS = 4;
const A_SECOND = 1_000;
const WARM_UP_SECONDS = amount(3);
const SECONDS = amount(5);
const IDLE = amount(5_000);
const MIB = 1024 * 1024;

export default async function benchmarks(): Promise<Benchmark[]> {
  const platform = await startPlatform();
  const bare = await startBare();
  let bareRate = 0;
  return [
    {
      name: `one task's events to ${WATCHERS} watchers`,
      figures: [
        {
          name: "a bare Connect stream",
          unit: "events a second",
          async measure() {
            await bareFanOut(bare.tasks);
            bareRate = await bareFanOut(bare.tasks);
            return bareRate;
          },
        },
        {
          name: "live events, stored and in order, against it",
          unit: "%",
          atLeast: 60,
          async measure() {
            await fanOut(platform);
            return (100 * (await fanOut(platform))) / bareRate;
          },
        },
      ],
      close: () => bare.close(),
    },
    {
      name: `from worker to watcher, ${A_SECOND} events a second of ${TASKS} tasks`,
      figures: [{ name: "p99", unit: "ms", atMost: 20, measure: () => progressP99(platform) }],
    },
    {
      name: `${IDLE} idle watchers`,
      figures: [
        { name: "memory that they add to the server", unit: "MiB", atMost: 250, measure: idleMemory },
      ],
      close: () => platform.close(),
    },
  ];
}

async function bareFanOut(tasks: Client<typeof TaskService>): Promise<number> {
  const startMs = performance.now();
  await Promise.all(Array.from({ length: WATCHERS }, () => drain(tasks, "t", BigInt(EVENTS))));
  return (WATCHERS * EVENTS * 1000) / (performance.now() - startMs);
}

async function drain(tasks: Client<typeof TaskService>, taskId: string, afterSequence = 0n): Promise<void> {
  for await (const { taskEvent: event } of tasks.watchTask({ taskId, afterSequence })) void event;
}

async function fanOut(platform: Platform): Promise<number> {
  const [lease] = await begin(platform, 1);
  if (lease === undefined) throw new Error("nothing to do");
  const watching = Array.from({ length: WATCHERS }, () => drain(platform.tasks, lease.taskId));
  const report = (processed: number) =>
    platform.workers.reportProgress({ lease, progress: { processed, message: REPORT } });
  await inFlight(20, 1, report);
  const startMs = performance.now();
  await inFlight(EVENTS, REPORTS_IN_FLIGHT, report);
  await platform.workers.failAssignment({ lease, failure: { reason: "DONE" } });
  await Promise.all(watching);
  return (WATCHERS * EVENTS * 1000) / (performance.now() - startMs);
}

/** Creates a number of tasks whose work has begun; returns their leases. */
async function begin(platform: Platform, tasks: number): Promise<Lease[]> {
  for (let i = 0; i < tasks; i++) await createTask(platform);
  const leases: Lease[] = [];
  const all = Promise.withResolvers<void>();
  const stop = takeWork(platform, tasks, (lease) => {
    leases.push(lease);
    if (leases.length === tasks) all.resolve();
  });
  await all.promise;
  stop();
  for (const lease of leases) await platform.workers.startAssignment({ lease });
  return leases;
}

/**
 * Returns the 99th percentile of the time in milliseconds from a report's call to its arrival at the watcher, after
 * warm-up. Measured objects stay referenced, because a garbage collection in this process would add to the time.
 */
async function progressP99(platform: Platform): Promise<number> {
  const leases = await begin(platform, TASKS);
  const reports = A_SECOND * (WARM_UP_SECONDS + SECONDS);
  const sentMs = new Float64Array(reports);
  const tookMs = new Float64Array(reports);
  const watching = leases.map(async ({ taskId }) => {
    for await (const { taskEvent: event } of platform.tasks.watchTask({ taskId })) {
      if (event?.payload.case !== "progress") continue;
      const { processed } = event.payload.value;
      tookMs[processed] = performance.now() - (sentMs[processed] ?? 0);
    }
  });
  let open = 0;
  const failed: unknown[] = [];
  const report = (processed: number) => {
    open++;
    sentMs[processed] = performance.now();
    const lease = leases[processed % TASKS] as Lease;
    platform.workers
      .reportProgress({ lease, progress: { processed, message: REPORT } })
      .catch((error: unknown) => failed.push(error))
      .finally(() => open--);
  };
  const startMs = performance.now();
  for (let sent = 0; sent < reports || open > 0; await pause()) {
    const due = Math.min(reports, Math.floor(((performance.now() - startMs) * A_SECOND) / 1000));
    while (sent < due) report(sent++);
  }
  if (failed.length > 0) throw failed[0];
  for (const lease of leases) await platform.workers.failAssignment({ lease, failure: { reason: "DONE" } });
  await Promise.all(watching);
  const counted = tookMs.slice(A_SECOND * WARM_UP_SECONDS).sort();
  return counted[Math.floor(counted.length * 0.99)] ?? Number.NaN;
}

const pause = () => new Promise((resolve) => setTimeout(resolve, 1));

/** Returns the MiB that the watchers add to an otherwise idle server, after garbage collection. */
async function idleMemory(): Promise<number> {
  const platform = await startPlatform();
  const stopping = new AbortController();
  const taskIds: string[] = [];
  await inFlight(IDLE, REPORTS_IN_FLIGHT, async () => taskIds.push(await createTask(platform)));
  const before = await platform.rss();
  let seen = 0;
  const allSeen = Promise.withResolvers<void>();
  const watching = taskIds.map(async (taskId) => {
    for await (const { taskEvent: event } of platform.tasks.watchTask(
      { taskId },
      { signal: stopping.signal },
    )) {
      if (event?.sequence === 1n && ++seen === IDLE) allSeen.resolve();
    }
  });
  await allSeen.promise;
  const bytes = (await platform.rss()) - before;
  stopping.abort();
  await Promise.allSettled(watching);
  await platform.close();
  return bytes / MIB;
}
