import { ErrorReason } from "@depute/core";
import { describe, expect, it } from "vitest";
import { type Held, type Outcome, remaining, settled, spentUp, standing } from "./spend.ts";

const held: Held = { id: "r", state: "held", amount: 100, charged: 0, expireTime: 1000 };
const committed: Held = { ...held, state: "committed", charged: 40 };
const released: Held = { ...held, state: "released" };

describe("a reservation", () => {
  it.each([
    ["held before its end", held, 999, "held", 0],
    ["held at its end, and then it counts in full", held, 1000, "expired", 100],
    ["committed, however late", committed, 5000, "committed", 40],
    ["released, however late", released, 5000, "released", 0],
  ] as const)("stands as %s", (_, reservation, now, state, charged) => {
    expect(standing(reservation, now)).toEqual({ state, charged });
  });

  it.each<[string, Held, Outcome, ReturnType<typeof settled>]>([
    ["the cost", held, { commit: 40 }, { state: "committed", charged: 40 }],
    ["no cost, which was still a call", held, { commit: 0 }, { state: "committed", charged: 0 }],
    [
      "all of it when the cost is not known",
      held,
      { commit: undefined },
      { state: "committed", charged: 100 },
    ],
    ["its release", held, "release", { state: "released", charged: 0 }],
    ["the same cost again", committed, { commit: 40 }, undefined],
    ["the same release again", released, "release", undefined],
  ])("is settled with %s", (_, reservation, outcome, next) => {
    expect(settled(reservation, outcome)).toEqual(next);
  });

  it.each<[string, Held, Outcome, ErrorReason]>([
    ["another cost", committed, { commit: 41 }, ErrorReason.RESERVATION_SETTLED],
    ["a release after a cost", committed, "release", ErrorReason.RESERVATION_SETTLED],
    ["a cost after a release", released, { commit: 0 }, ErrorReason.RESERVATION_SETTLED],
    ["more than was reserved", held, { commit: 101 }, ErrorReason.BUDGET_EXCEEDED],
  ])("is not settled with %s", (_, reservation, outcome, reason) => {
    expect(() => settled(reservation, outcome)).toThrow(expect.objectContaining({ reason }));
  });
});

describe("a chain's budget", () => {
  const level = (maxBudgetMicrocents: number, counted: number) => ({ maxBudgetMicrocents, counted });

  it.each([
    ["nothing spent", [level(10, 0), level(5, 0)], undefined, 5],
    ["an ancestor with less left", [level(10, 9), level(5, 0)], undefined, 1],
    ["an ancestor that is spent", [level(10, 10), level(5, 0)], 0, 0],
    ["a last block that is spent", [level(10, 5), level(5, 5)], 1, 0],
    ["a limit of nothing", [level(0, 0)], 0, 0],
    ["more counted than a narrower chain allows", [level(10, 3), level(2, 3)], 1, 0],
  ])("with %s", (_, levels, spentAt, left) => {
    expect(spentUp(levels)?.level).toBe(spentAt);
    expect(remaining(levels)).toBe(left);
  });
});
