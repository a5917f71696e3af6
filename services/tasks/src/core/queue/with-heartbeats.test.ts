import { ManualClock } from "@depute/core";
import { expect, test } from "vitest";
import { withHeartbeats } from "./with-heartbeats.ts";

const clock = new ManualClock();

/** Returns a source that yields an item only when the test calls `give`. */
function source() {
  const waiting: PromiseWithResolvers<IteratorResult<string>>[] = [];
  let returned = false;
  return {
    iterator: {
      next() {
        const one = Promise.withResolvers<IteratorResult<string>>();
        waiting.push(one);
        return one.promise;
      },
      async return() {
        returned = true;
        return { done: true as const, value: undefined };
      },
    },
    give: (value: string) => waiting.shift()?.resolve({ done: false, value }),
    end: () => waiting.shift()?.resolve({ done: true, value: undefined }),
    fail: () => waiting.shift()?.reject(new Error("broken")),
    askedCount: () => waiting.length,
    returned: () => returned,
  };
}

test("a silent source gets heartbeats, and is read once for each item", async () => {
  const { iterator, give, askedCount, end } = source();
  const items = withHeartbeats(iterator, 1000, clock)[Symbol.asyncIterator]();
  const first = items.next();
  clock.advance(999);
  give("a");
  expect(await first).toEqual({ done: false, value: "a" });
  for (let beat = 0; beat < 3; beat++) {
    const silent = items.next();
    clock.advance(1000);
    expect(await silent).toEqual({ done: false, value: undefined });
    expect(askedCount()).toBe(1);
  }
  const last = items.next();
  end();
  expect(await last).toMatchObject({ done: true });
  expect(clock.pending).toBe(0);
});

test.each([
  ["an item", (from: ReturnType<typeof source>) => from.give("b"), { value: "b" }],
  ["the end", (from: ReturnType<typeof source>) => from.end(), { done: true }],
])("%s that arrives while no reader waits is not lost", async (_name, come, expected) => {
  const from = source();
  const items = withHeartbeats(from.iterator, 1000, clock)[Symbol.asyncIterator]();
  const silent = items.next();
  clock.advance(1000);
  await silent;
  come(from);
  await Promise.resolve();
  expect(await items.next()).toMatchObject(expected);
});

test("an error of the source ends the stream, also while no reader waits", async () => {
  const from = source();
  const items = withHeartbeats(from.iterator, 1000, clock)[Symbol.asyncIterator]();
  const silent = items.next();
  clock.advance(1000);
  await silent;
  from.fail();
  await Promise.resolve();
  await expect(items.next()).rejects.toThrow("broken");
});

test("a reader that leaves stops the timer, and the source is closed", async () => {
  const from = source();
  const items = withHeartbeats(from.iterator, 1000, clock)[Symbol.asyncIterator]();
  const silent = items.next();
  await items.return?.();
  expect(await silent).toMatchObject({ done: true });
  expect(from.returned()).toBe(true);
  expect(clock.pending).toBe(0);
});

test("a zero interval sends no heartbeats", async () => {
  const from = source();
  const items = withHeartbeats(from.iterator, 0, clock)[Symbol.asyncIterator]();
  const first = items.next();
  expect(clock.pending).toBe(0);
  from.give("a");
  expect(await first).toMatchObject({ value: "a" });
});
