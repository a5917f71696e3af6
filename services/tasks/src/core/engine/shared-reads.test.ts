import { InProcessBus } from "@depute/bus";
import { ManualClock } from "@depute/core";
import { WakeUps } from "@depute/service";
import { afterEach, beforeEach, expect, test } from "vitest";
import { type Bench, begin, openBench } from "../../testing/bench.ts";
import { collect } from "../../testing/platform.ts";
import { TASK_TOPIC } from "./topics.ts";
import { SharedReads } from "./watch.ts";

function scene() {
  const clock = new ManualClock();
  const bus = new InProcessBus({
    onError: (error) => {
      throw error;
    },
  });
  const wakeUps = new WakeUps(bus, TASK_TOPIC);
  const askedIds: string[] = [];
  const events = async (taskId: string, after: bigint) => {
    askedIds.push(`${taskId} ${after}`);
    return [];
  };
  return {
    clock,
    bus,
    wakeUps,
    asked: askedIds,
    reads: new SharedReads({ log: { events }, wakeUps, clock, maxAgeMs: 1000 }),
  };
}

test("watchers at the same position share a read, until the task's next wake-up", async () => {
  const { reads, wakeUps, asked, bus } = scene();
  wakeUps.on("t", () => {});
  await Promise.all([reads.read("t", 1n, 9), reads.read("t", 1n, 9)]);
  await reads.read("t", 1n, 9);
  expect(asked).toEqual(["t 1"]);
  bus.publish(TASK_TOPIC, "t");
  await new Promise(setImmediate);
  await Promise.all([reads.read("t", 1n, 9), reads.read("t", 1n, 9)]);
  await reads.read("t", 2n, 9);
  expect(asked).toEqual(["t 1", "t 1", "t 2"]);
});

test("a shared read expires, so a lost wake-up only delays watchers", async () => {
  const { reads, wakeUps, asked, clock } = scene();
  wakeUps.on("t", () => {});
  await reads.read("t", 1n, 9);
  clock.advance(1000);
  await reads.read("t", 1n, 9);
  expect(asked).toHaveLength(2);
});

test("no read is kept for a task without watchers", async () => {
  const { reads, wakeUps } = scene();
  const stop = wakeUps.on("t", () => {});
  await reads.read("t", 1n, 9);
  expect(reads.size).toBe(1);
  stop();
  reads.leave("t");
  expect(reads.size).toBe(0);
  await reads.read("t", 1n, 9);
  expect(reads.size).toBe(0);
});

let bench: Bench;
beforeEach(async () => {
  bench = await openBench();
});
afterEach(() => bench.close());

test("a hundred watchers of a task get the same events, with about one read for each event", async () => {
  const { task } = await bench.tasks.createTask({
    requestId: "one",
    draft: { agentId: "worker", description: "count" },
  });
  const taskId = task?.id ?? "";
  const lease = await begin(bench, "worker");
  const { engine } = bench.runtime.context;
  let reads = 0;
  const events = engine.events.bind(engine);
  engine.events = (...args) => {
    reads++;
    return events(...args);
  };
  const watching = Array.from({ length: 100 }, () => collect(bench.tasks.watchTask({ taskId })));
  await new Promise(setImmediate);
  for (let processed = 1; processed <= 20; processed++) {
    await bench.workers.reportProgress({ lease, progress: { processed } });
    await new Promise(setImmediate);
  }
  await bench.workers.failAssignment({ lease, failure: { reason: "DONE" } });
  const observedTasks = await Promise.all(watching);
  for (const log of observedTasks)
    expect(log.map(({ taskEvent }) => taskEvent?.sequence)).toEqual(
      observedTasks[0]?.map(({ taskEvent }) => taskEvent?.sequence),
    );
  expect(observedTasks[0]).toHaveLength(24);
  expect(reads).toBeLessThan(200);
});
