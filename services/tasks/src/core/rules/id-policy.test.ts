import { TaskStatus } from "@depute/contracts/depute/tasks/v1/task_pb";
import { IdConflictPolicy, IdReusePolicy } from "@depute/contracts/depute/tasks/v1/task_service_pb";
import { describe, expect, test } from "vitest";
import { idOutcome } from "./id-policy.ts";

const { RUNNING, COMPLETED, FAILED } = TaskStatus;
const [reuse, conflict] = [IdReusePolicy.UNSPECIFIED, IdConflictPolicy.UNSPECIFIED];

describe("an external id in use", () => {
  test.each([
    // The columns: status, same draft, reuse policy, conflict policy, outcome.
    [RUNNING, true, reuse, conflict, "attach"],
    [RUNNING, false, reuse, conflict, "refuse"],
    [RUNNING, false, reuse, IdConflictPolicy.USE_EXISTING, "attach"],
    [RUNNING, true, reuse, IdConflictPolicy.TERMINATE_EXISTING, "replace"],
    [RUNNING, false, reuse, IdConflictPolicy.TERMINATE_EXISTING, "replace"],
    [RUNNING, true, reuse, IdConflictPolicy.REJECT, "refuse"],
    [RUNNING, false, IdReusePolicy.ALLOW, conflict, "refuse"],
    [COMPLETED, true, reuse, conflict, "attach"],
    [COMPLETED, false, reuse, conflict, "refuse"],
    [COMPLETED, true, IdReusePolicy.ALLOW, conflict, "replace"],
    [COMPLETED, true, IdReusePolicy.ALLOW_UNSUCCESSFUL, conflict, "attach"],
    [COMPLETED, false, IdReusePolicy.ALLOW_UNSUCCESSFUL, conflict, "refuse"],
    [FAILED, true, IdReusePolicy.ALLOW_UNSUCCESSFUL, conflict, "replace"],
    [FAILED, true, IdReusePolicy.REJECT, conflict, "refuse"],
    [FAILED, false, reuse, IdConflictPolicy.TERMINATE_EXISTING, "refuse"],
  ])(
    "status %d, same draft %s, reuse %d, conflict %d: %s",
    (status, isSame, reusePolicy, conflictPolicy, outcome) => {
      expect(idOutcome(status, isSame, { reusePolicy, conflictPolicy })).toBe(outcome);
    },
  );
});
