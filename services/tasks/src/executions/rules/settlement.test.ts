import { SettlementState } from "@depute/contracts/depute/tasks/v1/execution_service_pb";
import { expect, test } from "vitest";
import { firstState, isSettled, settle } from "./settlement.ts";

const { AUTHORIZED, HELD, CAPTURED, RELEASED, VOIDED, REFUNDED } = SettlementState;

test.each([
  [false, AUTHORIZED, CAPTURED, VOIDED],
  [true, HELD, RELEASED, REFUNDED],
])("with escrow %s, a payment is settled once, as paid or unpaid", (escrow, first, paid, unpaid) => {
  expect(firstState(escrow)).toBe(first);
  expect([settle(first, true), settle(first, false)]).toEqual([paid, unpaid]);
  for (const state of [paid, unpaid]) {
    expect(isSettled(state)).toBe(true);
    expect(() => settle(state, true)).toThrow("is settled");
    expect(() => settle(state, false)).toThrow("is settled");
  }
});
