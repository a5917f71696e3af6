import { getEventListeners } from "node:events";
import type { CallOptions } from "@connectrpc/connect";
import { expect, test } from "vitest";
import { leavable } from "./started-stream.ts";

/**
 * Creates a fake call. Its stream yields 1 and 2, then fails if `fails` is true, or ends. Like the streams of Connect's
 * clients, the stream has no `return`.
 */
function call(fails: boolean) {
  const signals: (AbortSignal | undefined)[] = [];
  const open = ({ signal }: CallOptions): AsyncIterable<number> => {
    signals.push(signal);
    let count = 0;
    const next = async () => {
      count += 1;
      if (count <= 2) return { done: false as const, value: count };
      if (fails) throw new Error("broken");
      return { done: true as const, value: undefined };
    };
    return { [Symbol.asyncIterator]: () => ({ next }) };
  };
  return { open, signals };
}

test.each<[string, boolean, number, isEnded: boolean]>([
  ["that its reader leaves ends its call", false, 1, true],
  ["that is read to its end has ended", false, 3, false],
  ["that fails ends its call", true, 3, true],
])("a stream %s, and leaves no listener", async (_, fails, reads, isEnded) => {
  const caller = new AbortController();
  const { open, signals } = call(fails);
  const stream = leavable(open, { signal: caller.signal });
  const read = async () => {
    for (let count = 0; count < reads; count += 1) await stream.next();
    await stream.return(undefined);
  };
  await (fails ? expect(read()).rejects.toThrow("broken") : read());
  expect(signals.map((signal) => signal?.aborted)).toEqual([isEnded]);
  expect(caller.signal.aborted).toBe(false);
  expect(getEventListeners(caller.signal, "abort")).toEqual([]);
});

test("a stream ends when its caller disconnects", async () => {
  const caller = new AbortController();
  const { open, signals } = call(false);
  const stream = leavable(open, { signal: caller.signal });
  await stream.next();
  caller.abort(new Error("gone"));
  expect(signals[0]?.aborted).toBe(true);
});
