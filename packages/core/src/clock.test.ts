import { describe, expect, it, vi } from "vitest";
import { ManualClock, systemTimers } from "./clock.ts";

describe("ManualClock", () => {
  it("runs timers at their times and in their order", () => {
    const clock = new ManualClock(1000);
    const seen: [string, number][] = [];
    const note = (name: string) => () => seen.push([name, clock.now()]);
    clock.after(20, note("c"));
    clock.after(10, note("a"));
    clock.after(10, note("b"));
    clock.advance(15);
    expect(seen).toEqual([
      ["a", 1010],
      ["b", 1010],
    ]);
    expect(clock.now()).toBe(1015);
    clock.advance(5);
    expect(seen.at(-1)).toEqual(["c", 1020]);
    expect(clock.pending).toBe(0);
  });

  it("runs timers that another timer set", () => {
    const clock = new ManualClock(0);
    let ticks = 0;
    const tick = () => {
      ticks++;
      clock.after(10, tick);
    };
    clock.after(10, tick);
    clock.advance(35);
    expect(ticks).toBe(3);
  });

  it("does not run a cancelled timer", () => {
    const clock = new ManualClock();
    const fn = vi.fn();
    clock.after(1, fn)();
    clock.advance(10);
    expect(fn).not.toHaveBeenCalled();
  });

  it("runs no timers when it is set back", () => {
    const clock = new ManualClock(100);
    const fn = vi.fn();
    clock.after(10, fn);
    clock.set(50);
    expect(clock.now()).toBe(50);
    expect(fn).not.toHaveBeenCalled();
  });
});

describe("systemTimers", () => {
  it("waits for a delay longer than setTimeout allows", () => {
    vi.useFakeTimers();
    try {
      const fn = vi.fn();
      const ms = 2 ** 31 + 5000;
      systemTimers.after(ms, fn);
      vi.advanceTimersByTime(ms - 1);
      expect(fn).not.toHaveBeenCalled();
      vi.advanceTimersByTime(1);
      expect(fn).toHaveBeenCalledOnce();
    } finally {
      vi.useRealTimers();
    }
  });

  it("cancels a timer", () => {
    vi.useFakeTimers();
    try {
      const fn = vi.fn();
      systemTimers.after(5, fn)();
      vi.advanceTimersByTime(10);
      expect(fn).not.toHaveBeenCalled();
    } finally {
      vi.useRealTimers();
    }
  });
});
