import { Code, ConnectError } from "@connectrpc/connect";
import { ErrorInfoSchema } from "@depute/contracts/google/rpc/error_details_pb";
import { DeputeError, ErrorReason } from "@depute/core";
import { describe, expect, it } from "vitest";
import { fromConnectError, reasonOf, toConnectError, toWire } from "./errors-on-wire.ts";

describe("toConnectError", () => {
  it.each([
    [Code.InvalidArgument, ErrorReason.INVALID_REQUEST],
    [Code.DeadlineExceeded, ErrorReason.DEADLINE_EXCEEDED],
    [Code.ResourceExhausted, ErrorReason.LIMIT_EXCEEDED],
    [Code.Unimplemented, ErrorReason.UNKNOWN_METHOD],
    [Code.Unavailable, ErrorReason.DEPENDENCY_UNAVAILABLE],
    [Code.Unauthenticated, ErrorReason.UNAUTHENTICATED],
    [Code.PermissionDenied, ErrorReason.CALLER_NOT_ALLOWED],
  ])("gives Connect's own code %i the reason %i", (code, reason) => {
    const error = toConnectError(new ConnectError("why", code));
    expect(error).toMatchObject({ code, rawMessage: "why" });
    expect(reasonOf(error)).toBe(reason);
  });

  it.each([
    ["a crash", new Error("inside")],
    ["a thrown value that is not an error", "inside"],
    ["a fault with private text", new DeputeError(ErrorReason.INTERNAL, "inside")],
    ["a code without a reason", new ConnectError("inside", Code.DataLoss)],
    ["a foreign server's fault", new ConnectError("inside", Code.Internal)],
  ])("reveals nothing of %s", (_, thrown) => {
    const error = toConnectError(thrown, "r-1");
    expect(error.code).toBe(Code.Internal);
    expect(error.rawMessage).toBe("internal error");
    expect(error.findDetails(ErrorInfoSchema)).toMatchObject([
      { reason: "INTERNAL", metadata: { request_id: "r-1" } },
    ]);
    expect(error.details).toHaveLength(1);
  });

  it("keeps a refusal unchanged, and drops its other headers", () => {
    const passing = toWire(
      new DeputeError(ErrorReason.LEASE_LOST, "stale", { metadata: { task: "t", epoch: "1" } }),
    );
    passing.metadata.set("x-secret", "s");
    const error = toConnectError(toConnectError(passing));
    expect(error).toMatchObject({ code: Code.Aborted, rawMessage: "stale" });
    expect(error.metadata.has("x-secret")).toBe(false);
    expect(fromConnectError(error)).toMatchObject({
      reason: ErrorReason.LEASE_LOST,
      metadata: { task: "t", epoch: "1" },
    });
  });

  it("ignores a reason of another domain", () => {
    const value = { reason: "TASK_NOT_FOUND", domain: "example.org" };
    const foreign = new ConnectError("x", Code.NotFound, undefined, [{ desc: ErrorInfoSchema, value }]);
    expect(reasonOf(foreign)).toBeUndefined();
    expect(reasonOf(toConnectError(foreign))).toBe(ErrorReason.INTERNAL);
  });

  it("keeps a cancellation by the caller", () => {
    expect(toConnectError(new ConnectError("gone", Code.Canceled)).code).toBe(Code.Canceled);
    expect(toConnectError(new DOMException("gone", "AbortError")).code).toBe(Code.Canceled);
  });
});

describe("fromConnectError", () => {
  it("restores the error that was sent", () => {
    const sent = new DeputeError(ErrorReason.INVALID_REQUEST, "no", {
      metadata: { a: "b" },
      violations: [
        { field: "x", description: "y", reason: "z" },
        { field: "p", description: "q" },
      ],
    });
    const { reason, message, metadata, violations } = fromConnectError(toWire(sent));
    expect({ reason, message, metadata, violations }).toEqual({
      reason: sent.reason,
      message: sent.message,
      metadata: sent.metadata,
      violations: sent.violations,
    });
  });

  it.each([
    [new ConnectError("x", Code.Unavailable), ErrorReason.DEPENDENCY_UNAVAILABLE],
    [new ConnectError("x", Code.DataLoss), ErrorReason.INTERNAL],
    [new Error("x"), ErrorReason.INTERNAL],
    [DeputeError.received(ErrorReason.LEASE_LOST, "x"), ErrorReason.LEASE_LOST],
  ])("finds a reason for %s", (caught, reason) => {
    expect(fromConnectError(caught).reason).toBe(reason);
  });
});
