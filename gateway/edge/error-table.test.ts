import { ErrorReason } from "@depute/core";
import { describe, expect, test } from "vitest";
import { errorTable, rowOf } from "./error-table.ts";
import { JSON_RPC, OWN } from "./own-codes.ts";

describe("the table of a wire", () => {
  const table = errorTable({ TASK_FAILED: { code: -32007, message: "TASK_FAILED" } });

  test.each([
    ["INTERNAL", JSON_RPC.INTERNAL_ERROR],
    ["INVALID_REQUEST", JSON_RPC.INVALID_PARAMS],
    ["UNKNOWN_METHOD", JSON_RPC.METHOD_NOT_FOUND],
    ["UNAUTHENTICATED", OWN.UNAUTHENTICATED],
    ["CALLER_NOT_ALLOWED", OWN.NOT_ALLOWED],
    ["AGENT_NOT_FOUND", OWN.NOT_FOUND],
    ["AGENT_EXISTS", OWN.CONFLICT],
    ["LEASE_LOST", OWN.CONFLICT],
    ["TASK_STATE_CONFLICT", OWN.WRONG_STATE],
    ["EVENTS_PURGED", OWN.WRONG_STATE],
    ["LIMIT_EXCEEDED", OWN.LIMIT_EXCEEDED],
    ["SHUTTING_DOWN", OWN.UNAVAILABLE],
    ["DEADLINE_EXCEEDED", OWN.DEADLINE_EXCEEDED],
    ["TASK_FAILED", { code: -32007, message: "TASK_FAILED" }],
  ] as const)("%s", (reason, row) => {
    expect(rowOf(table, ErrorReason[reason])).toEqual(row);
  });

  test("a reason of a later version is an internal error", () => {
    expect(rowOf(table, 99_999 as ErrorReason)).toBe(JSON_RPC.INTERNAL_ERROR);
  });
});
