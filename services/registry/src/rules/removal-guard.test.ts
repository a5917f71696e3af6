import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  countStart,
  type GuardState,
  initialGuardState,
  MAX_HOLD_MS,
  maxRunningCounted,
  nextGuardState,
  OPEN,
  WARM_UP_MS,
} from "./removal-guard.ts";

const NOW = 1_000_000;
const holding = (since: number, until = since): GuardState => ({
  holds: true,
  asOf: since - 60_000,
  since,
  until,
});

describe("nextGuardState", () => {
  it.each<[string, GuardState, number, number, boolean]>([
    ["no ended lease", OPEN, 100, 0, false],
    ["a few of few", OPEN, 0, 9, false],
    ["ten of ten", OPEN, 0, 10, true],
    ["30 % of many", OPEN, 70, 30, false],
    ["more than 30 %", OPEN, 69, 31, true],
    ["many, of very many", OPEN, 10_000, 500, false],
    ["still missing", holding(NOW - 1_000), 70, 30, true],
    ["15 % still missing", holding(NOW - 1_000), 85, 15, false],
    ["16 % still missing", holding(NOW - 1_000), 84, 16, true],
    ["too few still missing", holding(NOW - 1_000), 0, 9, false],
    ["all agents returned", holding(NOW - 1_000), 100, 0, false],
    ["held too long", holding(NOW - MAX_HOLD_MS), 0, 100, false],
    ["a hold before its earliest end", holding(NOW - 1_000, NOW + 1), 100, 0, true],
  ])("%s", (_, state, running, vanished, holds) => {
    expect(nextGuardState(state, { running, vanished }, NOW).holds).toBe(holds);
  });

  it("freezes the reference time one minute back", () => {
    const tripped = nextGuardState(OPEN, { running: 0, vanished: 50 }, NOW);
    expect(tripped).toMatchObject({ asOf: NOW - 60_000, since: NOW });
    expect(countStart(tripped, NOW + 5_000)).toBe(NOW - 60_000);
    expect(nextGuardState(tripped, { running: 0, vanished: 50 }, NOW + 5_000)).toBe(tripped);
  });

  it("decides equally with capped and full counts", () => {
    const states = fc.constantFrom<GuardState>(OPEN, holding(NOW - 1_000));
    fc.assert(
      fc.property(states, fc.nat(100_000), fc.nat(20_000), (state, running, vanished) => {
        const counted = Math.min(running, maxRunningCounted(vanished));
        expect(nextGuardState(state, { running: counted, vanished }, NOW)).toEqual(
          nextGuardState(state, { running, vanished }, NOW),
        );
      }),
    );
  });

  it("never holds longer than its limit, for any counts", () => {
    const counts = fc.record({ running: fc.nat(1_000), vanished: fc.nat(1_000) });
    fc.assert(
      fc.property(fc.array(counts, { minLength: 1, maxLength: 50 }), (series) => {
        let state: GuardState = OPEN;
        series.forEach((each, i) => {
          const now = NOW + i * 30_000;
          state = nextGuardState(state, each, now);
          if (state.holds) expect(now - state.since).toBeLessThan(MAX_HOLD_MS);
        });
      }),
    );
  });
});

describe("initialGuardState", () => {
  it.each<[string, number | undefined, GuardState]>([
    ["at the first start", undefined, OPEN],
    ["without downtime", NOW, OPEN],
    [
      "after downtime",
      NOW - 90_000,
      { holds: true, asOf: NOW - 90_000, since: NOW, until: NOW + WARM_UP_MS },
    ],
  ])("%s", (_, lastUp, expected) => {
    expect(initialGuardState(lastUp, NOW)).toEqual(expected);
  });
});
