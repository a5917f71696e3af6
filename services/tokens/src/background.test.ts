import { setImmediate } from "node:timers/promises";
import { ManualClock } from "@depute/core";
import { expect, it } from "vitest";
import { BackgroundWork } from "./background.ts";
import { silent } from "./testing/parts.ts";

it("does what is asked for while it ends its work before", async () => {
  let left = 0;
  let done = 0;
  const work = new BackgroundWork({ timers: new ManualClock(), log: silent }, "test", async () => {
    if (left === 0) return false;
    left--;
    done++;
    // Somebody who waits for this step asks for more as soon as it is done.
    if (done < 50) void Promise.resolve().then(ask);
    return left > 0;
  });
  const ask = () => {
    left++;
    work.kick();
  };
  ask();
  for (let turn = 0; turn < 50; turn++) await setImmediate();
  expect([left, done]).toEqual([0, 50]);
  await work.close();
});

it("tries a step that failed again later, and none after its end", async () => {
  const clock = new ManualClock();
  let calls = 0;
  const work = new BackgroundWork({ timers: clock, log: silent }, "test", async () => {
    calls++;
    throw new Error("not now");
  });
  work.kick();
  await setImmediate();
  expect(calls).toBe(1);
  clock.advance(5000);
  await setImmediate();
  expect(calls).toBe(2);
  await work.close();
  clock.advance(5000);
  work.kick();
  await setImmediate();
  expect(calls).toBe(2);
});
