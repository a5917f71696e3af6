import { ErrorReasonSchema } from "@depute/contracts/depute/errors/v1/error_reason_pb";
import { describe, expect, it } from "vitest";
import { DeputeError, ErrorReason, invalid, reasonName, reasonNamed, Status, statusOf } from "./errors.ts";

describe("the vocabulary", () => {
  it.each(ErrorReasonSchema.values.map((value) => [value.name, value.number as ErrorReason] as const))(
    "%s has a status and comes back from its name",
    (name, number) => {
      expect(statusOf(number)).toBeGreaterThan(0);
      expect(`ERROR_REASON_${reasonName(number)}`).toBe(name);
      expect(reasonNamed(reasonName(number))).toBe(number);
    },
  );

  it.each([
    [ErrorReason.TASK_NOT_FOUND, Status.NOT_FOUND],
    [ErrorReason.LEASE_LOST, Status.ABORTED],
    [ErrorReason.SHUTTING_DOWN, Status.UNAVAILABLE],
    [9999 as ErrorReason, Status.INTERNAL],
  ])("reason %i travels as status %i", (reason, status) => {
    expect(statusOf(reason)).toBe(status);
  });

  it("names no reason for a foreign word", () => {
    expect(reasonNamed("ERROR_REASON_INTERNAL")).toBeUndefined();
    expect(reasonNamed("toString")).toBeUndefined();
  });
});

describe("DeputeError", () => {
  it("keeps what it was given", () => {
    const cause = new Error("why");
    const error = new DeputeError(ErrorReason.TASK_NOT_FOUND, "no such task", {
      metadata: { task: "t" },
      cause,
    });
    expect(error).toMatchObject({
      name: "DeputeError",
      reason: ErrorReason.TASK_NOT_FOUND,
      metadata: { task: "t" },
      violations: [],
      cause,
    });
  });

  it("has no cause when none was given", () => {
    expect("cause" in new DeputeError(ErrorReason.INTERNAL, "x")).toBe(false);
  });

  it("is made for one field by invalid", () => {
    const error = invalid("filter.name", "too long");
    expect(error.reason).toBe(ErrorReason.INVALID_REQUEST);
    expect(error.message).toBe("filter.name: too long");
    expect(error.violations).toEqual([{ field: "filter.name", description: "too long" }]);
  });
});
