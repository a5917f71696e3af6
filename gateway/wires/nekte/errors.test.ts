import { create } from "@bufbuild/protobuf";
import { ErrorReasonSchema } from "@depute/contracts/depute/errors/v1/error_reason_pb";
import { TaskSchema, TaskStatus, TaskStatusSchema } from "@depute/contracts/depute/tasks/v1/task_pb";
import { ErrorReason } from "@depute/core";
import { describe, expect, test } from "vitest";
import { errorNote, NEKTE, NEKTE_ERRORS } from "./errors.ts";
import { STATES, stateBefore, stateOf, stateOfTask } from "./states.ts";

describe("NEKTE's errors", () => {
  test("every reason of the vocabulary has a row, in JSON-RPC's own codes or those left to servers", () => {
    for (const { number, name } of ErrorReasonSchema.values) {
      const row = NEKTE_ERRORS.get(number as ErrorReason);
      expect(row, name).toBeDefined();
      const { code = 0, message = "" } = row ?? {};
      expect(message, name).not.toBe("");
      expect((code <= -32000 && code >= -32099) || [-32601, -32602, -32603].includes(code), name).toBe(true);
    }
  });

  test.each([
    ["VERSION_MISMATCH", -32001],
    ["CAPABILITY_NOT_FOUND", -32002],
    ["BUDGET_EXCEEDED", -32003],
    ["CONTEXT_EXPIRED", -32004],
    ["CONTEXT_PERMISSION_DENIED", -32005],
    ["TASK_TIMEOUT", -32006],
    ["TASK_FAILED", -32007],
    ["VERIFICATION_FAILED", -32008],
    ["TASK_NOT_FOUND", -32009],
    ["TASK_NOT_CANCELLABLE", -32010],
    ["TASK_NOT_RESUMABLE", -32011],
  ] as const)("%s is %i, as the protocol numbers it", (name, code) => {
    expect(NEKTE_ERRORS.get(ErrorReason[name])).toEqual({ code, message: name });
    expect(NEKTE[name]).toEqual({ code, message: name });
  });

  test("is in the metadata over gRPC", () => {
    expect(errorNote(ErrorReason.TASK_NOT_FOUND)).toEqual({ nekte_code: "-32009" });
    expect(errorNote(ErrorReason.INVALID_REQUEST)).toEqual({ nekte_code: "-32602" });
  });
});

describe("NEKTE's states", () => {
  test("every status has one", () => {
    expect(Object.keys(STATES).sort()).toEqual(
      TaskStatusSchema.values.map(({ name }) => name.slice("TASK_STATUS_".length)).sort(),
    );
  });

  test.each([
    ["REJECTED", "failed"],
    ["EXPIRED", "failed"],
    ["REVOKED", "failed"],
    ["INPUT_REQUIRED", "running"],
    ["IN_REVIEW", "running"],
    ["CANCELLED", "cancelled"],
    ["SUSPENDED", "suspended"],
  ] as const)("%s is %s", (status, state) => {
    expect(stateOf(TaskStatus[status])).toBe(state);
  });

  test.each([
    ["new", "PENDING", 1n, false, "pending"],
    ["taken", "ACCEPTED", 2n, false, "accepted"],
    ["accepted with an estimate", "ACCEPTED", 3n, true, "accepted"],
    ["waiting again", "PENDING", 4n, false, "running"],
    ["accepted again", "ACCEPTED", 4n, false, "running"],
    ["suspended", "SUSPENDED", 4n, false, "suspended"],
  ] as const)("a task that is %s is %s in event %i", (_, name, lastSequence, hasEstimate, state) => {
    const status = TaskStatus[name];
    const task = create(TaskSchema, { status, lastSequence, ...(hasEstimate ? { estimate: {} } : {}) });
    expect(stateOfTask(task)).toBe(state);
    expect(stateBefore(status, create(TaskSchema, { ...task, lastSequence: lastSequence + 1n }))).toBe(state);
  });

  test("a status from a later version is refused, not shown as another state", () => {
    expect(() => stateOf(99 as TaskStatus)).toThrow("is not a task status");
  });
});
