import { ErrorReason } from "@depute/core";
import { describe, expect, it } from "vitest";
import {
  budgetDenial,
  nextReservation,
  type Outcome,
  type ReservationRecord,
  remaining,
  reservationState,
} from "./spend.ts";

const heldReservation: ReservationRecord = {
  id: "r",
  state: "held",
  amount: 100,
  charged: 0,
  expireTime: 1000,
};
const committed: ReservationRecord = { ...heldReservation, state: "committed", charged: 40 };
const released: ReservationRecord = { ...heldReservation, state: "released" };

describe("a reservation", () => {
  it.each([
    ["held before its end", heldReservation, 999, "held", 0],
    ["held at its expiry, then charged in full", heldReservation, 1000, "expired", 100],
    ["committed, also late", committed, 5000, "committed", 40],
    ["released, also late", released, 5000, "released", 0],
  ] as const)("is %s", (_, reservation, now, state, charged) => {
    expect(reservationState(reservation, now)).toEqual({ state, charged });
  });

  it.each<[string, ReservationRecord, Outcome, ReturnType<typeof nextReservation>]>([
    ["the cost", heldReservation, { commit: 40 }, { state: "committed", charged: 40 }],
    ["no cost, which was still a call", heldReservation, { commit: 0 }, { state: "committed", charged: 0 }],
    [
      "the full amount for an unknown cost",
      heldReservation,
      { commit: undefined },
      { state: "committed", charged: 100 },
    ],
    ["its release", heldReservation, "release", { state: "released", charged: 0 }],
    ["the same cost again", committed, { commit: 40 }, undefined],
    ["the same release again", released, "release", undefined],
  ])("is settled with %s", (_, reservation, outcome, next) => {
    expect(nextReservation(reservation, outcome)).toEqual(next);
  });

  it.each<[string, ReservationRecord, Outcome, ErrorReason]>([
    ["another cost", committed, { commit: 41 }, ErrorReason.RESERVATION_SETTLED],
    ["a release after a cost", committed, "release", ErrorReason.RESERVATION_SETTLED],
    ["a cost after a release", released, { commit: 0 }, ErrorReason.RESERVATION_SETTLED],
    ["more than was reserved", heldReservation, { commit: 101 }, ErrorReason.BUDGET_EXCEEDED],
  ])("is not settled with %s", (_, reservation, outcome, reason) => {
    expect(() => nextReservation(reservation, outcome)).toThrow(expect.objectContaining({ reason }));
  });
});

describe("a chain's budget", () => {
  const level = (maxBudgetMicrocents: number, counted: number) => ({ maxBudgetMicrocents, counted });

  it.each([
    ["nothing spent", [level(10, 0), level(5, 0)], undefined, 5],
    ["an ancestor with less left", [level(10, 9), level(5, 0)], undefined, 1],
    ["an ancestor without remaining budget", [level(10, 10), level(5, 0)], 0, 0],
    ["a last block without remaining budget", [level(10, 5), level(5, 5)], 1, 0],
    ["a limit of nothing", [level(0, 0)], 0, 0],
    ["more counted than a narrower chain allows", [level(10, 3), level(2, 3)], 1, 0],
  ])("with %s", (_, levels, spentAt, expectedRest) => {
    expect(budgetDenial(levels)?.level).toBe(spentAt);
    expect(remaining(levels)).toBe(expectedRest);
  });
});
