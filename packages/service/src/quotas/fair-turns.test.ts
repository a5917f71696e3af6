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
