import { describe, expect, it } from "vitest";
import { ManualClock } from "./clock.ts";
import { pause } from "./pause.ts";

/** Begins a pause of one second. `isOver` says whether the pause has ended. */
function begin(signal?: AbortSignal) {
  const clock = new ManualClock();
  let isOver = false;
  let wake = () => {};
  const untilWoken = (given: () => void) => {
    wake = given;
  };
  void pause(1000, clock, signal, untilWoken).then(() => {
    isOver = true;
  });
  return { clock, wake: () => wake(), isOver: () => clock.nextTurn().then(() => isOver) };
}

describe("pause", () => {
  it("ends after its time", async () => {
    const { clock, isOver } = begin();
    clock.advance(999);
    expect(await isOver()).toBe(false);
    clock.advance(1);
    expect(await isOver()).toBe(true);
  });

  it("returns at once if the signal has aborted", async () => {
    const { clock, isOver } = begin(AbortSignal.abort());
    expect([await isOver(), clock.pending]).toEqual([true, 0]);
  });

  it("ends when the signal aborts, and when it is woken", async () => {
    const controller = new AbortController();
    const aborted = begin(controller.signal);
    const woken = begin(controller.signal);
    woken.wake();
    expect([await aborted.isOver(), await woken.isOver()]).toEqual([false, true]);
    controller.abort();
    expect(await aborted.isOver()).toBe(true);
    expect([aborted.clock.pending, woken.clock.pending]).toEqual([0, 0]);
  });

  it("leaves no listener behind", async () => {
    let listeners = 0;
    const signal = {
      aborted: false,
      addEventListener: () => listeners++,
      removeEventListener: () => listeners--,
    };
    const { clock, isOver } = begin(signal as unknown as AbortSignal);
    clock.advance(1000);
    expect([await isOver(), listeners]).toEqual([true, 0]);
  });
});
