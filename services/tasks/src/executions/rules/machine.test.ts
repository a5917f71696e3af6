import { ExecutionStatus } from "@depute/contracts/agenta/delegation/v0/execution_receipt_pb";
import { expect, test } from "vitest";
import { canFollow, FIRST_STATUSES, isTerminal, TERMINAL_STATUSES, TRANSITIONS } from "./machine.ts";

const ALL = Object.values(ExecutionStatus).filter((status) => status !== ExecutionStatus.UNSPECIFIED);

test("a receipt follows another exactly as the table allows", () => {
  for (const from of ALL) {
    for (const to of ALL) {
      const isInTable = TRANSITIONS.some(([before, after]) => before === from && after === to);
      expect([from, to, canFollow(from, to)]).toEqual([from, to, isInTable]);
    }
  }
});

test("the first receipt is an acceptance or a rejection", () => {
  expect(ALL.filter((status) => canFollow(undefined, status))).toEqual([...FIRST_STATUSES]);
});

test("no receipt follows a terminal one, or one of the same status", () => {
  for (const from of ALL) {
    expect(canFollow(from, from)).toBe(false);
    if (isTerminal(from)) expect(ALL.filter((to) => canFollow(from, to))).toEqual([]);
  }
  expect(TERMINAL_STATUSES.every(isTerminal)).toBe(true);
});
