import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Client } from "@connectrpc/connect";
import type { TaskService } from "@depute/contracts/depute/tasks/v1/task_service_pb";
import type { Lease } from "@depute/contracts/depute/tasks/v1/worker_service_pb";
import { openStore } from "@depute/store";
import { amount, turns } from "../amount.ts";
import type { Benchmark } from "../bench.ts";
import { inFlight } from "../in-flight.ts";
import { inTurns, type Player } from "../turns.ts";
import { appendP99, reportDelayP99 } from "./delay.ts";
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
const DELAY_ROUNDS = turns(5);
const PACE = { perSecond: A_SECOND, seconds: amount(300) / 100, warmUpSeconds: amount(100) / 100 };
const BARE = "a bare Connect stream";
const APPEND = "one flushed append";
const BOTH = "both together";
const OURS = "Depute, stored and in order";
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
    },
    inTurns({
      name: `from worker to watcher, p99, ${A_SECOND} events a second of ${TASKS} tasks`,
      unit: "ms",
      rounds: DELAY_ROUNDS,
      names: [BARE, APPEND, BOTH, OURS],
      quotients: [{ name: "Depute, by both", of: OURS, by: BOTH, atMost: 2 }],
      start: () => startDelays(platform, bare),
      close: () => bare.close(),
    }),
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

/** Returns the players that take turns at the same pace: the bare stream, a flushed append, and the platform. */
async function startDelays(platform: Platform, bare: Awaited<ReturnType<typeof startBare>>) {
  const folder = mkdtempSync(join(tmpdir(), "depute-bench-"));
  const sql = "CREATE TABLE rows (id INTEGER PRIMARY KEY, value BLOB NOT NULL)";
  const store = await openStore({
    file: join(folder, "bench.sqlite"),
    migrations: [{ id: 1, name: "rows", sql }],
    onError: console.error,
  });
  const bareLeases = Array.from({ length: TASKS }, (_, i) => ({ taskId: `task-${i}`, epoch: 1n }));
  const last = { bare: Number.NaN, append: Number.NaN };
  const players: Player[] = [
    {
      name: BARE,
      async round() {
        last.bare = await reportDelayP99({ ...bare, leases: bareLeases }, PACE);
        return last.bare;
      },
    },
    {
      name: APPEND,
      async round() {
        last.append = await appendP99(store, PACE);
        return last.append;
      },
    },
    { name: BOTH, round: async () => last.bare + last.append },
    {
      name: OURS,
      async round() {
        const leases = await begin(platform, TASKS);
        const p99 = await reportDelayP99({ ...platform, leases }, PACE);
        for (const lease of leases)
          await platform.workers.failAssignment({ lease, failure: { reason: "DONE" } });
        return p99;
      },
    },
  ];
  return {
    players,
    async stop() {
      await store.close();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

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
