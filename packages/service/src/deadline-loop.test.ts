import { ManualClock } from "@depute/core";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { DeadlineLoop } from "./deadline-loop.ts";
import { createLogger } from "./log.ts";

const MAX_WAIT_MS = 1000;

let clock: ManualClock;
let runTimes: number[];
let deadlines: number[];
/** The work of each run, which tests replace. */
let within: (signal: AbortSignal) => Promise<void>;
let loop: DeadlineLoop;

beforeEach(() => {
  [clock, runTimes, deadlines, within] = [new ManualClock(0), [], [], async () => {}];
  loop = new DeadlineLoop({
    clock,
    timers: clock,
    log: createLogger({ level: "silent", name: "test" }),
    failureMessage: "deadlines could not be applied",
    maxWaitMs: MAX_WAIT_MS,
    async runDueWork(signal) {
      runTimes.push(clock.now());
      await within(signal);
      deadlines = deadlines.filter((atMs) => atMs > clock.now());
      return deadlines.length === 0 ? undefined : Math.min(...deadlines);
    },
  });
});
afterEach(() => loop.close());

async function pass(ms: number): Promise<void> {
  clock.advance(ms);
  await loop.idle();
}

describe("a loop over deadlines", () => {
  test("runs at the start, at each deadline, and after the longest wait", async () => {
    deadlines = [300, 700];
    loop.start();
    await loop.idle();
    for (const ms of [299, 1, 400, 999, 1]) await pass(ms);
    expect(runTimes).toEqual([0, 300, 700, 1700]);
  });

  test("runs first after the start delay", async () => {
    loop.start(400);
    await pass(399);
    expect(runTimes).toEqual([]);
    await pass(1);
    expect(runTimes).toEqual([400]);
  });

  test("runs at an earlier deadline that is added, and not sooner for a later one", async () => {
    loop.start();
    await loop.idle();
    loop.notice(200);
    loop.notice(900);
    await pass(199);
    expect(runTimes).toEqual([0]);
    await pass(1);
    expect(runTimes).toEqual([0, 200]);
  });

  test("keeps a deadline that is added during a run", async () => {
    within = async () => loop.notice(50);
    loop.start();
    await loop.idle();
    within = async () => {};
    await pass(50);
    expect(runTimes).toEqual([0, 50]);
  });

  test("runs again after a wake-up during a run", async () => {
    let isFirst = true;
    within = async () => {
      if (isFirst) loop.wake();
      isFirst = false;
    };
    loop.start();
    await loop.idle();
    expect(runTimes).toEqual([0, 0]);
  });

  test("runs again after a failed run, after the longest wait", async () => {
    within = async () => {
      throw new Error("the store is away");
    };
    loop.start();
    await loop.idle();
    within = async () => {};
    await pass(MAX_WAIT_MS - 1);
    expect(runTimes).toEqual([0]);
    await pass(1);
    expect(runTimes).toEqual([0, MAX_WAIT_MS]);
  });

  test("aborts the active run at its close, waits for it, and does not run again", async () => {
    let aborted = false;
    within = (signal) =>
      new Promise((resolve) => {
        signal.addEventListener("abort", () => {
          aborted = true;
          resolve();
        });
      });
    loop.start();
    await loop.close();
    expect(aborted).toBe(true);
    loop.wake();
    loop.notice(10);
    clock.advance(10 * MAX_WAIT_MS);
    expect([runTimes, clock.pending]).toEqual([[0], 0]);
  });
});
