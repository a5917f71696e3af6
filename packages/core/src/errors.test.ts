import { getOption } from "@bufbuild/protobuf";
import {
  ErrorReasonSchema,
  metadata as metadataOption,
} from "@depute/contracts/depute/errors/v1/error_reason_pb";
import { describe, expect, it } from "vitest";
import {
  DeputeError,
  ErrorReason,
  invalid,
  reasonName,
  reasonNamed,
  requestIdReused,
  Status,
  statusOf,
  UNKNOWN,
} from "./errors.ts";
import { REQUIRED_METADATA } from "./required-metadata.ts";

describe("the vocabulary", () => {
  it.each(ErrorReasonSchema.values.map((value) => [value.name, value.number as ErrorReason] as const))(
    "%s has a status, and is found by its name",
    (name, number) => {
      expect(statusOf(number)).toBeGreaterThan(0);
      expect(`ERROR_REASON_${reasonName(number)}`).toBe(name);
      expect(reasonNamed(reasonName(number))).toBe(number);
    },
  );

  it.each(ErrorReasonSchema.values.map((value) => [value.name, value] as const))(
    "%s requires the metadata that its option names",
    (_, value) => {
      const { [value.number as ErrorReason]: keys = [] }: Partial<Record<ErrorReason, readonly string[]>> =
        REQUIRED_METADATA;
      expect(keys).toEqual(getOption(value, metadataOption));
      const { metadata } = DeputeError.received(value.number as ErrorReason, "no");
      expect(Object.keys(metadata)).toEqual(keys);
    },
  );

  it.each([
    [ErrorReason.TASK_NOT_FOUND, Status.NOT_FOUND],
    [ErrorReason.LEASE_LOST, Status.ABORTED],
    [ErrorReason.SHUTTING_DOWN, Status.UNAVAILABLE],
    [9999 as ErrorReason, Status.INTERNAL],
  ])("reason %i has the status %i", (reason, status) => {
    expect(statusOf(reason)).toBe(status);
  });

  it("has no reason for an unknown word", () => {
    expect(reasonNamed("ERROR_REASON_INTERNAL")).toBeUndefined();
    expect(reasonNamed("toString")).toBeUndefined();
  });
});

describe("DeputeError", () => {
  it("keeps its fields", () => {
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

  it("does not compile without the metadata of its reason", () => {
    const reason: ErrorReason = ErrorReason.LIMIT_EXCEEDED as ErrorReason;
    const max = "1";
    // @ts-expect-error: no metadata
    expect(new DeputeError(ErrorReason.LIMIT_EXCEEDED, "x")).toBeInstanceOf(Error);
    // @ts-expect-error: no `limit`
    expect(new DeputeError(ErrorReason.LIMIT_EXCEEDED, "x", { metadata: { max } })).toBeInstanceOf(Error);
    // @ts-expect-error: no `max`, which the reason may demand
    expect(new DeputeError(reason, "x", { metadata: { limit: "l" } })).toBeInstanceOf(Error);
    expect(new DeputeError(ErrorReason.UNAUTHENTICATED, "x").metadata).toEqual({});
  });

  it("keeps its reason and metadata with another message", () => {
    const first = new DeputeError(ErrorReason.TASK_NOT_FOUND, "no", { metadata: { task: "t" }, cause: 1 });
    const violations = [{ field: "id", description: "unknown" }];
    const changed = first.with({ message: "not here", metadata: { more: "m" }, violations });
    expect(changed).toMatchObject({
      ...{ reason: first.reason, message: "not here", violations },
      metadata: { task: "t", more: "m" },
    });
    expect("cause" in changed).toBe(false);
    expect(first.with({ cause: first })).toMatchObject({ message: "no", violations: [], cause: first });
  });

  it("states that the limit of a foreign refusal is unknown", () => {
    const { metadata } = DeputeError.received(ErrorReason.LIMIT_EXCEEDED, "no", { metadata: { max: "5" } });
    expect(metadata).toEqual({ limit: UNKNOWN, max: "5" });
  });

  it("has no cause unless one is passed", () => {
    expect("cause" in new DeputeError(ErrorReason.INTERNAL, "x")).toBe(false);
  });

  it("is created for one field by invalid", () => {
    const error = invalid("filter.name", "too long");
    expect(error.reason).toBe(ErrorReason.INVALID_REQUEST);
    expect(error.message).toBe("filter.name: too long");
    expect(error.violations).toEqual([{ field: "filter.name", description: "too long" }]);
  });
});

it.each([
  [requestIdReused("r1"), "request_id: was used with a different body; use a new one", "request_id"],
  [
    requestIdReused("k1", "request", "request.idempotency_key"),
    "request.idempotency_key: was used with a different request; use a new one",
    "request.idempotency_key",
  ],
])("a request id of another request is refused with its field: %s", (refusal, message, field) => {
  expect(refusal).toMatchObject({ reason: ErrorReason.REQUEST_ID_REUSED, message, violations: [{ field }] });
});
