import { ManualClock } from "@depute/core";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { createLogger } from "./log.ts";
import { Outbox } from "./outbox.ts";

let clock: ManualClock;
let rows: number[];
let delivered: number[];
let away: boolean;
let tries: number;
let outbox: Outbox<number>;

beforeEach(() => {
  [clock, rows, delivered, away, tries] = [new ManualClock(0), [], [], false, 0];
  outbox = new Outbox<number>({
    timers: clock,
    log: createLogger({ level: "silent", name: "test" }),
    failureMessage: "a number cannot be told",
    first: async (limit) => rows.slice(0, limit),
    async tell(row) {
      tries++;
      if (away) throw new Error("away");
      delivered.push(row);
    },
    drop: async (row) => {
      rows = rows.filter((other) => other !== row);
    },
  });
  outbox.start();
});
afterEach(() => outbox.close());

/** Waits until all pending work that waits for no timer has run. */
const settle = () => new Promise((resolve) => setImmediate(resolve));
const pass = async (ms: number) => {
  clock.advance(ms);
  await settle();
};

test("rows of the start are delivered in order, and later rows as they are written", async () => {
  rows = Array.from({ length: 120 }, (_, index) => index);
  const all = [...rows, 120];
  await pass(0);
  await vi.waitFor(() => expect(rows).toEqual([]));
  rows = [120];
  outbox.wake();
  await settle();
  expect([delivered, rows]).toEqual([all, []]);
});

test("the waits grow while the receiver is unavailable, and no row is lost", async () => {
  away = true;
  rows = [1];
  await pass(0);
  const waits = [250, 500, 1000, 2000, 4000, 8000, 16_000, 30_000, 30_000];
  for (const [index, wait] of waits.entries()) {
    expect(tries).toBe(index + 1);
    outbox.wake();
    await pass(wait - 1);
    expect(tries).toBe(index + 1);
    await pass(1);
  }
  away = false;
  rows.push(2);
  await pass(30_000);
  expect([delivered, rows]).toEqual([[1, 2], []]);
});

test("a row without a wake-up is delivered at the next poll", async () => {
  await pass(0);
  rows = [1];
  await pass(30_000);
  expect(delivered).toEqual([1]);
});

test("no row is delivered after the close", async () => {
  await pass(0);
  await outbox.close();
  rows = [1];
  outbox.wake();
  await pass(60_000);
  expect(delivered).toEqual([]);
});
