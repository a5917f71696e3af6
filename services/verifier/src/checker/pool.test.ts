import { DeputeError, ManualClock, reasonName, systemClock, systemTimers, type Timers } from "@depute/core";
import { afterEach, describe, expect, test, vi } from "vitest";
import { doublingSchema, SLOW_VALUE } from "../testing/hostile.ts";
import type { Job } from "./jobs.ts";
import { WorkerPool } from "./pool.ts";
import type { PoolOptions } from "./pool-options.ts";

const pools: WorkerPool[] = [];
const faults: unknown[] = [];
afterEach(async () => {
  await Promise.all(pools.splice(0).map((pool) => pool.close()));
  expect(faults.splice(0)).toEqual([]);
});

function open(options: Partial<PoolOptions> = {}): WorkerPool {
  const pool = new WorkerPool({
    size: 1,
    jobLimitMs: 1000,
    maxWaiting: 10,
    memoryMb: 64,
    clock: systemClock,
    timers: systemTimers,
    onError: (error) => faults.push(error),
    ...options,
  });
  pools.push(pool);
  return pool;
}

const validate = (schema: unknown, value: unknown): Job & { kind: "validate" } => ({
  kind: "validate",
  dialect: "draft-07",
  schema: JSON.stringify(schema),
  value: JSON.stringify(value),
});
const quick = validate({ type: "string" }, 1);
const slow = validate(doublingSchema(), SLOW_VALUE);
/**
 * This validation takes minutes, because it compares every pair of items. It needs little memory, unlike the validation
 * of doublingSchema.
 */
const endless = validate(
  { type: "array", uniqueItems: true },
  Array.from({ length: 60_000 }, (_, i) => ({ i })),
);

async function reasonOf(job: Promise<unknown>): Promise<string> {
  const error = await job.then(
    () => undefined,
    (error: unknown) => error,
  );
  return error instanceof DeputeError ? reasonName(error.reason) : `no refusal: ${error}`;
}

/** On a busy machine, a thread may take seconds to start or to end. */
const SLOW_START = { timeout: 20_000 };

test("has threads while jobs exist, and ends them after a minute without jobs", async () => {
  const clock = new ManualClock();
  const pool = open({ timers: clock });
  expect(pool.threads).toBe(0);
  await pool.run(quick);
  await expect.poll(() => pool.threads, SLOW_START).toBe(3);
  await expect
    .poll(() => {
      clock.advance(60_000);
      return pool.threads;
    }, SLOW_START)
    .toBe(0);
  await pool.run(quick);
  expect(pool.threads).toBeGreaterThan(0);
});

test("answers every kind of job", async () => {
  const pool = open();
  expect(await pool.run(quick)).toEqual([{ path: "", message: "must be string" }]);
  const outputRule = JSON.stringify({
    verification: { method: "schema_match" },
    outputSchema: { type: "string" },
  });
  for (const output of ['"a"', "1", '"b"']) {
    const result = await pool.run({ kind: "verify", outputRule, output });
    expect(result).toMatchObject({ passed: output !== "1" });
  }
  const items = JSON.stringify([
    { schema: true },
    { pattern: "(?=a)", flags: "" },
    { schema: { type: "nope" } },
  ]);
  expect(await pool.run({ kind: "compile", items })).toMatchObject({
    unusable: "pattern",
    index: 1,
    pattern: "(?=a)",
  });
});

test("stops a job at its time limit and runs the next one in a new thread", async () => {
  const clock = new ManualClock();
  const pool = open({ timers: clock });
  const stuck = pool.run(slow);
  const next = pool.run(quick);
  await vi.waitFor(() => expect(clock.pending).toBe(1), { timeout: 5000 });
  clock.advance(999);
  clock.advance(1);
  expect(await reasonOf(stuck)).toBe("CHECK_TIMEOUT");
  expect(await next).toHaveLength(1);
  expect(clock.pending).toBe(0);
});

test("answers other jobs while one is stuck, and the event loop stays free", async () => {
  const clock = new ManualClock();
  const pool = open({ size: 2, timers: clock });
  const stuck = reasonOf(pool.run(endless));
  let ended = false;
  void stuck.then(() => {
    ended = true;
  });
  for (let i = 0; i < 5; i++) expect(await pool.run(quick)).toHaveLength(1);
  expect(ended).toBe(false);
  clock.advance(1000);
  expect(await stuck).toBe("CHECK_TIMEOUT");
});

test("stops a job at the memory limit", async () => {
  const pool = open({ memoryMb: 32, jobLimitMs: 30_000 });
  // The parsed value alone exceeds the heap limit.
  const value = `[${Array.from({ length: 400_000 }, (_, i) => `[{"a":${i}}]`).join(",")}]`;
  expect(await reasonOf(pool.run({ ...validate(true, 0), value }))).toBe("CHECK_TIMEOUT");
  expect(await pool.run(quick)).toHaveLength(1);
});

describe("the queue", () => {
  test("is bounded", async () => {
    const clock = new ManualClock();
    const pool = open({ maxWaiting: 2, timers: clock });
    const stuck = reasonOf(pool.run(slow));
    await vi.waitFor(() => expect(clock.pending).toBe(1), { timeout: 5000 });
    const waiting = [pool.run(quick), pool.run(quick)];
    expect(await reasonOf(pool.run(quick))).toBe("LIMIT_EXCEEDED");
    clock.advance(1000);
    expect(await stuck).toBe("CHECK_TIMEOUT");
    expect(await Promise.all(waiting)).toHaveLength(2);
  });

  test("drops jobs of ended calls", async () => {
    const clock = new ManualClock();
    const pool = open({ maxWaiting: 1, timers: clock });
    const stuck = reasonOf(pool.run(slow));
    await vi.waitFor(() => expect(clock.pending).toBe(1), { timeout: 5000 });
    const callerAbort = new AbortController();
    const abortReason = reasonOf(pool.run(quick, { signal: callerAbort.signal }));
    callerAbort.abort();
    const after = pool.run(quick);
    expect(await abortReason).toBe("DEADLINE_EXCEEDED");
    clock.advance(1000);
    await stuck;
    expect(await after).toHaveLength(1);
  });
});

test("close rejects waiting, running and later jobs", async () => {
  const clock = new ManualClock();
  const pool = open({ timers: clock });
  const running = reasonOf(pool.run(slow));
  await vi.waitFor(() => expect(clock.pending).toBe(1), { timeout: 5000 });
  const waiting = reasonOf(pool.run(quick));
  await pool.close();
  await pool.close();
  expect(await Promise.all([running, waiting, reasonOf(pool.run(quick))])).toEqual(
    Array(3).fill("SHUTTING_DOWN"),
  );
});

test("logs an unexpected failure and answers INTERNAL", async () => {
  const pool = open();
  expect(await reasonOf(pool.run({ kind: "compile", items: "not JSON" }))).toBe("INTERNAL");
  expect(faults.splice(0)).toHaveLength(1);
  expect(await pool.run(quick)).toHaveLength(1);
});

test("answers quick jobs while other callers hold every other thread", async () => {
  const clock = new ManualClock();
  const pool = open({ size: 2, timers: clock });
  const knownJob = { key: "known" };
  // The first run compiles the schema. Later runs are short, so the pool then counts the key as quick.
  for (let i = 0; i < 6; i++) expect(await pool.run(quick, knownJob)).toHaveLength(1);
  const stuck = ["a", "b", "c"].map((caller) => reasonOf(pool.run(endless, { caller, key: "slow" })));
  await vi.waitFor(() => expect(clock.pending).toBe(2), { timeout: 5000 });
  let unknown = "waits";
  const waiting = pool.run(quick, { caller: "d", key: "unknown" }).then(() => {
    unknown = "answered";
  });
  for (let i = 0; i < 5; i++) expect(await pool.run(quick, knownJob)).toHaveLength(1);
  expect(unknown).toBe("waits");
  // Two of the stuck jobs reach the time limit, and the pool stops them. Then the third stuck job and the job of `d`
  // run.
  clock.advance(1000);
  await waiting;
  await vi.waitFor(() => expect(clock.pending).toBe(1), { timeout: 5000 });
  clock.advance(1000);
  expect(await Promise.all(stuck)).toEqual(Array(3).fill("CHECK_TIMEOUT"));
});

test("one caller cannot occupy all threads", async () => {
  const clock = new ManualClock();
  const pool = open({ size: 2, timers: clock });
  const greedy = Array.from({ length: 3 }, () => reasonOf(pool.run(endless, { caller: "greedy" })));
  await vi.waitFor(() => expect(clock.pending).toBe(1), { timeout: 5000 });
  for (let i = 0; i < 3; i++) expect(await pool.run(quick, { caller: "other" })).toHaveLength(1);
  expect(clock.pending).toBe(1);
  await pool.close();
  expect(await Promise.all(greedy)).toEqual(Array(3).fill("SHUTTING_DOWN"));
});

test("a full queue rejects jobs of the caller with the most jobs first", async () => {
  const clock = new ManualClock();
  const pool = open({ size: 1, maxWaiting: 3, timers: clock });
  const stuck = reasonOf(pool.run(endless, { caller: "greedy" }));
  await vi.waitFor(() => expect(clock.pending).toBe(1), { timeout: 5000 });
  const greedy = Array.from({ length: 3 }, () => pool.run(quick, { caller: "greedy" }));
  const last = reasonOf(greedy[2] as Promise<unknown>);
  const other = pool.run(quick, { caller: "other" });
  expect(await last).toBe("LIMIT_EXCEEDED");
  clock.advance(1000);
  expect(await stuck).toBe("CHECK_TIMEOUT");
  expect(await other).toHaveLength(1);
  expect(await Promise.all(greedy.slice(0, 2))).toHaveLength(2);
});

test("makes long texts canonical in a thread and reports values without a canonical form", async () => {
  const pool = open();
  const text = JSON.stringify({ b: ["x".repeat(100_000)], a: 1 });
  expect(await pool.run({ kind: "canonical", text })).toEqual({
    canonical: `{"a":1,"b":["${"x".repeat(100_000)}"]}`,
  });
  expect(await pool.run({ kind: "canonical", text: '"\\ud800"' })).toEqual({
    problem: expect.stringContaining("surrogate"),
  });
});

test("only the job that reaches its limit is rejected, not the rest of its batch", async () => {
  let underWay = 0;
  const timers: Timers = {
    nextTurn: systemTimers.nextTurn,
    after(ms, fn) {
      underWay++;
      const cancel = systemTimers.after(ms, fn);
      return () => {
        underWay--;
        cancel();
      };
    },
  };
  // The time limit is far longer than a quick job needs, even on a busy machine.
  const pool = open({ size: 1, timers, jobLimitMs: 2000 });
  const knownJob = { key: "known" };
  for (let i = 0; i < 4; i++) expect(await pool.run(quick, knownJob)).toHaveLength(1);
  // Two single jobs occupy the two threads. Later jobs wait, and the pool then sends them as one batch.
  const jobs = [endless, endless].map((job) => reasonOf(pool.run(job, knownJob)));
  await vi.waitFor(() => expect(underWay).toBe(2), { timeout: 5000 });
  const together = [quick, endless, quick].map((job) => pool.run(job, knownJob));
  const culprit = reasonOf(together[1] as Promise<unknown>);
  expect(await Promise.all(jobs)).toEqual(Array(2).fill("CHECK_TIMEOUT"));
  expect(await culprit).toBe("CHECK_TIMEOUT");
  expect(await together[0]).toHaveLength(1);
  expect(await together[2]).toHaveLength(1);
});
