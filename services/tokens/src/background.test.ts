import { setImmediate } from "node:timers/promises";
import { ManualClock } from "@depute/core";
import { expect, it } from "vitest";
import { BackgroundWork } from "./background.ts";
import { silent } from "./testing/parts.ts";

it("runs again for a wake-up during the last step", async () => {
  let remainingSteps = 0;
  let doneSteps = 0;
  const work = new BackgroundWork({ timers: new ManualClock(), log: silent }, "test", async () => {
    if (remainingSteps === 0) return false;
    remainingSteps--;
    doneSteps++;
    // Each step asks for one more step at once, until 50 steps are done.
    if (doneSteps < 50) void Promise.resolve().then(ask);
    return remainingSteps > 0;
  });
  const ask = () => {
    remainingSteps++;
    work.wake();
  };
  ask();
  for (let turn = 0; turn < 50; turn++) await setImmediate();
  expect([remainingSteps, doneSteps]).toEqual([0, 50]);
  await work.close();
});

it("retries a failed step later, and none after close", async () => {
  const clock = new ManualClock();
  let calls = 0;
  const work = new BackgroundWork({ timers: clock, log: silent }, "test", async () => {
    calls++;
    throw new Error("not now");
  });
  work.wake();
  await setImmediate();
  expect(calls).toBe(1);
  clock.advance(5000);
  await setImmediate();
  expect(calls).toBe(2);
  await work.close();
  clock.advance(5000);
  work.wake();
  await setImmediate();
  expect(calls).toBe(2);
});
