import { ManualClock } from "@depute/core";
import { describe, expect, it, vi } from "vitest";
import { createLogger } from "./log.ts";
import { StreamFollower, type StreamFollowerOptions } from "./stream-follower.ts";

/** Creates a follower of a stream that the test controls, and counts how often the follower opens the stream. */
function following(follow: StreamFollowerOptions["follow"]) {
  const clock = new ManualClock();
  const lines: string[] = [];
  const log = createLogger({
    level: "warn",
    name: "test",
    destination: { write: (line) => void lines.push(line) },
  });
  const stream = vi.fn(follow);
  const follower = new StreamFollower({ streamName: "news", follow: stream, timers: clock, log });
  follower.start();
  /** Moves the clock, and lets the due work run until it waits again. */
  const advance = async (ms: number) => {
    clock.advance(ms);
    for (let turn = 0; turn < 10; turn++) await Promise.resolve();
  };
  return { clock, lines, stream, follower, advance };
}

const broken = async () => {
  throw new Error("away");
};

/** Returns a stream that stays open until the follower is closed. */
function untilAborted(signal: AbortSignal): Promise<void> {
  return new Promise((_, reject) => signal.addEventListener("abort", () => reject(new Error("aborted"))));
}

describe("StreamFollower", () => {
  it("opens its stream after its owner has finished its start", async () => {
    const { stream, follower, advance } = following(untilAborted);
    expect(stream).not.toHaveBeenCalled();
    await advance(0);
    expect(stream).toHaveBeenCalledTimes(1);
    await follower.close();
  });

  it("doubles its wait after each failure, up to 30 s, and logs it", async () => {
    const { stream, lines, follower, advance } = following(broken);
    await advance(0);
    const waits = [250, 500, 1000, 2000, 4000, 8000, 16_000, 30_000, 30_000];
    for (const [times, wait] of waits.entries()) {
      expect(lines.map((line) => JSON.parse(line)).at(-1)).toMatchObject({
        waitMs: wait,
        msg: "news cannot be followed; trying again",
      });
      await advance(wait - 1);
      expect(stream).toHaveBeenCalledTimes(times + 1);
      await advance(1);
      expect(stream).toHaveBeenCalledTimes(times + 2);
    }
    await follower.close();
  });

  it("resets its wait after a received item", async () => {
    let hears = false;
    const { stream, follower, advance } = following(async (_, onItem) => {
      if (hears) onItem();
      throw new Error("away");
    });
    await advance(0);
    await advance(250);
    hears = true;
    await advance(500);
    expect(stream).toHaveBeenCalledTimes(3);
    await advance(250);
    expect(stream).toHaveBeenCalledTimes(4);
    await follower.close();
  });

  it("reopens an ended stream without a warning", async () => {
    const { stream, lines, follower, advance } = following(async () => {});
    await advance(0);
    await advance(250);
    expect(stream).toHaveBeenCalledTimes(2);
    expect(lines).toEqual([]);
    await follower.close();
  });

  it.each([
    ["before it began", [], 0],
    ["while it waits", [0], 1],
    ["after some attempts", [0, 250, 500], 3],
  ])("ends %s, and leaves no timer", async (_, steps, times) => {
    const { clock, stream, follower, advance } = following(broken);
    for (const ms of steps) await advance(ms);
    await follower.close();
    expect(clock.pending).toBe(0);
    await advance(60_000);
    expect(stream).toHaveBeenCalledTimes(times);
  });

  it("ends an open stream without a warning", async () => {
    const { lines, follower, advance } = following(untilAborted);
    await advance(0);
    await follower.close();
    expect(lines).toEqual([]);
  });
});
