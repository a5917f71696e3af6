import { ManualClock } from "@depute/core";
import { expect, test } from "vitest";
import { watched } from "./watched.ts";

/** An async source of items that the test controls. */
function source() {
  const waiting: ((item: IteratorResult<number>) => void)[] = [];
  return {
    give: (value: number) => waiting.shift()?.({ done: false, value }),
    end: () => waiting.shift()?.({ done: true, value: undefined }),
    items: { next: () => new Promise<IteratorResult<number>>((resolve) => waiting.push(resolve)) },
  };
}

const settled = () => new Promise((resolve) => setImmediate(resolve));

test("a silent source is asked for its state, and is read while the answer says that it works", async () => {
  const timers = new ManualClock();
  const { items, give } = source();
  let askedTimes = 0;
  const heardTimes: number[] = [];
  const ask = async () => ++askedTimes < 3;
  const all = (async () => {
    for await (const item of watched(items, { timers, silenceMs: 100, ask })) heardTimes.push(item);
  })();
  timers.advance(99);
  give(1);
  await settled();
  expect(askedTimes).toBe(0);
  for (const times of [1, 2]) {
    timers.advance(100);
    await settled();
    expect(askedTimes).toBe(times);
  }
  give(2);
  await settled();
  timers.advance(100);
  await all;
  expect(heardTimes).toEqual([1, 2]);
});

test("an error of the question ends the reading", async () => {
  const timers = new ManualClock();
  const ask = async () => {
    throw new Error("fallen silent");
  };
  const next = watched(source().items, { timers, silenceMs: 100, ask }).next();
  const caught = expect(next).rejects.toThrow("fallen silent");
  timers.advance(100);
  await caught;
});

test("the end of the source ends the reading", async () => {
  const { items, end } = source();
  const next = watched(items, { timers: new ManualClock(), silenceMs: 100, ask: async () => true }).next();
  await settled();
  end();
  expect((await next).done).toBe(true);
});
