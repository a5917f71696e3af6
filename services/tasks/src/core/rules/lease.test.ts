import { create } from "@bufbuild/protobuf";
import { LeaseSchema } from "@depute/contracts/depute/tasks/v1/worker_service_pb";
import { ErrorReason } from "@depute/core";
import { describe, expect, test } from "vitest";
import { accepted, leaseOf, pending, started, T0 } from "../../testing/tasks.ts";
import { advance } from "./advance.ts";
import { isEndedLease, isSettledBy, requireLease } from "./lease.ts";
import { afterRelease } from "./retry.ts";
import { revokedStep } from "./revoke.ts";

const lease = create(LeaseSchema, { taskId: "t1", epoch: 1n });
const acceptedTask = accepted(pending(), T0);
const released = advance(
  acceptedTask,
  { payload: afterRelease(acceptedTask.task), by: "worker", settles: "release" },
  T0,
).record;
const revoked = advance(acceptedTask, revokedStep("taken back"), T0).record;

describe("a lease", () => {
  test.each([
    ["accepted", acceptedTask, true],
    ["running", started(acceptedTask, T0), true],
    ["released", released, false],
    ["released and dispatched again", accepted(released, T0), false],
    ["ended", revoked, false],
    ["never dispatched", pending(), false],
  ])("of a task that was %s: %s", (_name, record, valid) => {
    const check = () => requireLease(record, lease);
    if (valid) expect(check()).toEqual(record.hold);
    else expect(check).toThrow(expect.objectContaining({ reason: ErrorReason.LEASE_LOST }));
  });

  test("an epoch newer than the current one is refused like an older one", () => {
    expect(() => requireLease(acceptedTask, create(LeaseSchema, { taskId: "t1", epoch: 2n }))).toThrow(
      "lost",
    );
  });

  test("records how it ended, until the next worker ends its own", () => {
    expect(isSettledBy(released, lease, "release")).toBe(true);
    expect(isSettledBy(released, lease, "fail")).toBe(false);
    const next = accepted(released, T0);
    expect(isSettledBy(next, lease, "release")).toBe(true);
    expect(isSettledBy(next, leaseOf(next), "release")).toBe(false);
  });

  test("the last worker of an ended task gets the directive to stop, earlier ones have lost their lease", () => {
    expect(isEndedLease(revoked, lease)).toBe(true);
    expect(isEndedLease(acceptedTask, lease)).toBe(false);
    const ended = advance(accepted(released, T0), revokedStep("taken back"), T0).record;
    expect(isEndedLease(ended, lease)).toBe(false);
    expect(isEndedLease(ended, leaseOf(ended))).toBe(true);
  });
});
