import { ManualClock } from "@depute/core";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { DeadlineLoop } from "./deadline-loop.ts";
import { createLogger } from "./log.ts";

const MAX_WAIT_MS = 1000;

let clock: ManualClock;
let looks: number[];
let deadlines: number[];
/** Runs within each look. */
let within: (signal: AbortSignal) => Promise<void>;
let loop: DeadlineLoop;

beforeEach(() => {
  [clock, looks, deadlines, within] = [new ManualClock(0), [], [], async () => {}];
  loop = new DeadlineLoop({
    clock,
    timers: clock,
    log: createLogger({ level: "silent", name: "test" }),
    what: "deadlines could not be looked at",
    maxWaitMs: MAX_WAIT_MS,
    async look(signal) {
      looks.push(clock.now());
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
  test("looks at the start, at each deadline, and after the longest wait", async () => {
    deadlines = [300, 700];
    loop.start();
    await loop.idle();
    for (const ms of [299, 1, 400, 999, 1]) await pass(ms);
    expect(looks).toEqual([0, 300, 700, 1700]);
  });

  test("takes its first look after the delay of start", async () => {
    loop.start(400);
    await pass(399);
    expect(looks).toEqual([]);
    await pass(1);
    expect(looks).toEqual([400]);
  });

  test("looks at an earlier deadline that is noticed, and not sooner for a later one", async () => {
    loop.start();
    await loop.idle();
    loop.notice(200);
    loop.notice(900);
    await pass(199);
    expect(looks).toEqual([0]);
    await pass(1);
    expect(looks).toEqual([0, 200]);
  });

  test("keeps a deadline that is noticed during a look", async () => {
    within = async () => loop.notice(50);
    loop.start();
    await loop.idle();
    within = async () => {};
    await pass(50);
    expect(looks).toEqual([0, 50]);
  });

  test("looks once more when it is woken during a look", async () => {
    let isFirst = true;
    within = async () => {
      if (isFirst) loop.wake();
      isFirst = false;
    };
    loop.start();
    await loop.idle();
    expect(looks).toEqual([0, 0]);
  });

  test("goes on after a look that failed, after the longest wait", async () => {
    within = async () => {
      throw new Error("the store is away");
    };
    loop.start();
    await loop.idle();
    within = async () => {};
    await pass(MAX_WAIT_MS - 1);
    expect(looks).toEqual([0]);
    await pass(1);
    expect(looks).toEqual([0, MAX_WAIT_MS]);
  });

  test("waits at its close for the look under way, whose signal aborts, and looks no more", async () => {
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
    expect([looks, clock.pending]).toEqual([[0], 0]);
  });
});
