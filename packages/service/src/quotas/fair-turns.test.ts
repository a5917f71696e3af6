import { ErrorReason, ManualClock } from "@depute/core";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { FairTurns, type FairTurnsOptions, lineOf, type Turn } from "./fair-turns.ts";

const NEVER = new AbortController().signal;

/** Returns a FairTurns, and the names of the callers whose calls have begun, in order. */
function started(options: Partial<FairTurnsOptions> = {}) {
  const clock = new ManualClock();
  const turns = new FairTurns({ clock, timers: clock, ...options });
  const begun: { caller: string; turn: Turn }[] = [];
  const arrive = (caller: string, signal = NEVER) => {
    const entered = turns.enter(caller, signal);
    if (entered instanceof Promise) return entered.then((turn) => void begun.push({ caller, turn }));
    begun.push({ caller, turn: entered });
    return Promise.resolve();
  };
  return { clock, turns, begun, arrive };
}

const callers = (begun: readonly { caller: string }[]) => begun.map(({ caller }) => caller).join("");

describe("turns", () => {
  test("a single caller has up to the maximum number of turns", async () => {
    const { begun, arrive, turns } = started({ maxTurns: 3 });
    for (let i = 0; i < 5; i++) void arrive("a");
    expect(begun.length).toBe(3);
    begun[0]?.turn.end();
    await Promise.resolve();
    expect(begun.length).toBe(4);
    expect(turns.waiting).toBe(1);
  });

  test("a turn that ends twice starts only one further call", async () => {
    const { begun, arrive } = started({ maxTurns: 1 });
    for (let i = 0; i < 3; i++) void arrive("a");
    begun[0]?.turn.end();
    begun[0]?.turn.end();
    await Promise.resolve();
    expect(begun.length).toBe(2);
  });

  test("waiting callers take turns", async () => {
    const { begun, arrive } = started({ maxTurns: 1 });
    for (const caller of "aaaabbbcc") void arrive(caller);
    for (let i = 0; i < 8; i++) {
      begun[i]?.turn.end();
      await Promise.resolve();
    }
    expect(callers(begun)).toBe("ababcabca");
  });

  test("the call of a light caller begins at once beside 3,000 calls of another caller", async () => {
    const { begun, arrive } = started();
    for (let i = 0; i < 3000; i++) void arrive("g");
    const before = begun.length;
    expect(before).toBe(256);
    await arrive("m");
    expect(callers(begun.slice(before))).toBe("m");
  });

  test("a caller with many calls has one turn while a light caller calls, and more afterwards", async () => {
    const { clock, begun, arrive } = started();
    void arrive("m");
    for (let i = 0; i < 3000; i++) void arrive("g");
    const running = () => begun.filter(({ caller }) => caller === "g").length;
    expect(running()).toBeLessThanOrEqual(8);
    for (const { turn } of begun.splice(1)) turn.end();
    clock.advance(10);
    await Promise.resolve();
    expect(callers(begun)).toBe("mg");
    begun[0]?.turn.end();
    clock.advance(1_200);
    await Promise.resolve();
    expect(running()).toBeGreaterThan(100);
  });

  test("a turn of 50 ms ends while calls wait, because its call waits for something else", async () => {
    const { clock, begun, arrive } = started({ maxTurns: 1 });
    for (const caller of "aa") void arrive(caller);
    clock.advance(49);
    await Promise.resolve();
    expect(callers(begun)).toBe("a");
    clock.advance(1);
    await Promise.resolve();
    expect(callers(begun)).toBe("aa");
  });

  test("a call that arrives after 50 ms takes the place of a call that lasts longer", () => {
    const { clock, begun, arrive } = started({ maxTurns: 1 });
    void arrive("a");
    clock.advance(50);
    void arrive("a");
    expect(callers(begun)).toBe("aa");
  });

  test("a waiting call that is aborted leaves the line, and the next one begins", async () => {
    const { begun, arrive, turns } = started({ maxTurns: 1 });
    void arrive("a");
    const leaving = new AbortController();
    const left = arrive("a", leaving.signal);
    void arrive("a");
    leaving.abort(new Error("the client left"));
    await expect(left).rejects.toThrow("the client left");
    expect(turns.waiting).toBe(1);
    begun[0]?.turn.end();
    await Promise.resolve();
    expect(callers(begun)).toBe("aa");
  });

  test("a caller with too many waiting calls is refused, and others are not", () => {
    const { arrive, turns } = started({ maxTurns: 1, maxWaiting: 2 });
    for (let i = 0; i < 3; i++) void arrive("a");
    expect(() => turns.enter("a", NEVER)).toThrow(
      expect.objectContaining({
        reason: ErrorReason.LIMIT_EXCEEDED,
        metadata: { limit: "waiting_calls", max: "2", retry_after_ms: "1000" },
      }),
    );
    expect(() => void arrive("b")).not.toThrow();
  });
});

describe("a heavy caller beside a light caller", () => {
  /** Returns a FairTurns in which the caller g has 300 waiting calls and no turn, and the caller m has one turn. */
  async function besideLight(options?: Partial<FairTurnsOptions>) {
    const all = started(options);
    const { begun, arrive } = all;
    void arrive("m");
    for (let i = 0; i < 308; i++) void arrive("g");
    const take = () => begun.splice(0);
    const endAll = async () => {
      for (const { turn } of take()) turn.end();
      await Promise.resolve();
    };
    const [light, ...heavy] = take();
    for (const { turn } of heavy) turn.end();
    await Promise.resolve();
    return { ...all, endAll, endLight: () => light?.turn.end() };
  }

  test("begins no call between the light caller's calls", async () => {
    const { clock, begun, endLight } = await besideLight();
    clock.advance(9);
    await Promise.resolve();
    expect(callers(begun)).toBe("");
    endLight();
    clock.advance(1);
    await Promise.resolve();
    expect(callers(begun)).toBe("");
  });

  test("begins one call together with each of the light caller's calls, after it", async () => {
    const { clock, begun, arrive, endLight, endAll } = await besideLight();
    endLight();
    for (let call = 0; call < 100; call++) {
      clock.advance(1);
      void arrive("m");
      await Promise.resolve();
      expect(callers(begun)).toBe("mg");
      await endAll();
      expect(callers(begun)).toBe("");
    }
  });

  test.each([
    ["10 ms after the begin of the light caller's call", 10, false],
    ["2 ms after the end of the light caller's call", 2, true],
  ])("begins the next call %s, and then one after the other", async (_, ms, hasEnded) => {
    const { clock, begun, endLight, endAll } = await besideLight();
    if (hasEnded) endLight();
    clock.advance(ms);
    await Promise.resolve();
    for (let call = 0; call < 10; call++) {
      expect(callers(begun)).toBe("g");
      await endAll();
    }
  });

  test("does not pause while the maximum number of turns is in use", async () => {
    const { begun, arrive, endAll } = await besideLight({ maxTurns: 1 });
    await endAll();
    void arrive("n");
    void arrive("o");
    await Promise.resolve();
    expect(callers(begun)).toContain("g");
  });

  test("does not make the light caller's write wait for two flushes", async () => {
    const { clock, begun, arrive, endLight } = await besideLight();
    endLight();
    const FLUSH_MS = 5;
    const durations: number[] = [];
    let flushing: { turn: Turn; caller: string }[] = [];
    let flushEndMs = 0;
    let arrivalMs = clock.monotonic() + 1;
    // A store that flushes the writes of all calls which began before the flush.
    for (let ms = 0; ms < 1_000; ms++) {
      clock.advance(1);
      const now = clock.monotonic();
      if (now === flushEndMs) {
        for (const { turn, caller } of flushing.splice(0)) {
          turn.end();
          if (caller !== "m") continue;
          durations.push(now - arrivalMs);
          arrivalMs = now + 1;
        }
      }
      if (now === arrivalMs) void arrive("m");
      for (let i = 0; i < 5; i++) await Promise.resolve();
      if (flushing.length > 0 || begun.length === 0) continue;
      flushing = begun.splice(0);
      flushEndMs = now + FLUSH_MS;
    }
    expect(durations.length).toBeGreaterThan(100);
    expect(Math.max(...durations)).toBe(FLUSH_MS);
  });
});

test("property: every call begins once, and at most the maximum runs", async () => {
  const step = fc.oneof(
    fc.record({ arrive: fc.constantFrom("a", "b", "c", "d") }),
    fc.record({ end: fc.nat(50) }),
    fc.record({ leave: fc.nat(50) }),
  );
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 200 }), async (steps) => {
      const { begun, arrive, turns } = started({ maxTurns: 4, sharedTurns: 3 });
      const leaving: AbortController[] = [];
      let arrived = 0;
      let left = 0;
      let ended = 0;
      for (const each of steps) {
        if ("arrive" in each) {
          const controller = new AbortController();
          leaving.push(controller);
          arrived += 1;
          void arrive(each.arrive, controller.signal).catch(() => {
            left += 1;
          });
        } else if ("leave" in each) leaving[each.leave]?.abort(new Error("left"));
        else if (begun[each.end] !== undefined) {
          begun[each.end]?.turn.end();
          begun[each.end] = { caller: "", turn: { end() {} } };
          ended = begun.filter(({ caller }) => caller === "").length;
        }
        await Promise.resolve();
        expect(begun.length - ended).toBeLessThanOrEqual(8);
      }
      for (let i = 0; i < begun.length; i++) {
        begun[i]?.turn.end();
        await Promise.resolve();
      }
      expect(turns.waiting).toBe(0);
      expect(begun.length + left).toBe(arrived);
    }),
  );
});

test("a caller without proven principal has the line of its address", () => {
  expect(lineOf("ada", "192.0.2.1")).toBe("ada");
  expect(lineOf("", "192.0.2.1")).toBe("address 192.0.2.1");
});
