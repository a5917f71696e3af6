import { TaskStatus } from "@depute/contracts/depute/tasks/v1/task_pb";
import { ErrorReason } from "@depute/core";
import { describe, expect, test } from "vitest";
import {
  type Actor,
  canTransition,
  isHeld,
  isTerminal,
  OPEN_STATUSES,
  stateConflict,
  statusName,
  TERMINAL_STATUSES,
  TRANSITIONS,
} from "./state-machine.ts";

const ALL = Object.values(TaskStatus).filter((status) => status !== TaskStatus.UNSPECIFIED);

// A copy of the transitions in the diagram of the life cycle. The test compares this copy with the table, so a
// mistake in the table fails the test.
const PICTURE: Record<string, string[]> = {
  pending: ["accepted", "in_review", "completed", "rejected", "failed", "cancelled", "expired", "revoked"],
  accepted: [
    "running",
    "in_review",
    "completed",
    "rejected",
    "pending",
    "failed",
    "cancelled",
    "expired",
    "revoked",
  ],
  running: [
    "suspended",
    "input_required",
    "in_review",
    "completed",
    "pending",
    "failed",
    "cancelled",
    "expired",
    "revoked",
  ],
  suspended: ["pending", "in_review", "completed", "failed", "cancelled", "expired", "revoked"],
  input_required: [
    "running",
    "pending",
    "suspended",
    "in_review",
    "completed",
    "failed",
    "cancelled",
    "expired",
    "revoked",
  ],
  in_review: ["completed", "pending", "failed", "cancelled", "expired", "revoked"],
  completed: [],
  rejected: [],
  failed: [],
  cancelled: [],
  expired: [],
  revoked: [],
};

describe("the table of transitions", () => {
  test.each(ALL.flatMap((from) => ALL.map((to) => [statusName(from), statusName(to), from, to] as const)))(
    "%s -> %s",
    (fromName, toName, from, to) => {
      expect(canTransition(from, to)).toBe(PICTURE[fromName]?.includes(toName));
    },
  );

  test("has each pair once", () => {
    const pairs = TRANSITIONS.map(({ from, to }) => `${from} ${to}`);
    expect(new Set(pairs).size).toBe(pairs.length);
  });

  test("every status is open or terminal, and only terminal ones have no transition", () => {
    expect([...OPEN_STATUSES, ...TERMINAL_STATUSES].sort((a, b) => a - b)).toEqual(ALL);
    for (const status of ALL) {
      expect(isTerminal(status)).toBe(!ALL.some((to) => canTransition(status, to)));
    }
  });

  const owners: [Actor, TaskStatus, TaskStatus, boolean][] = [
    ["worker", TaskStatus.RUNNING, TaskStatus.COMPLETED, true],
    ["delegator", TaskStatus.RUNNING, TaskStatus.COMPLETED, false],
    ["worker", TaskStatus.PENDING, TaskStatus.CANCELLED, false],
    ["delegator", TaskStatus.RUNNING, TaskStatus.CANCELLED, true],
    ["clock", TaskStatus.RUNNING, TaskStatus.PENDING, true],
    ["delegator", TaskStatus.RUNNING, TaskStatus.PENDING, false],
    ["worker", TaskStatus.RUNNING, TaskStatus.SUSPENDED, true],
    ["delegator", TaskStatus.RUNNING, TaskStatus.SUSPENDED, false],
    ["delegator", TaskStatus.SUSPENDED, TaskStatus.PENDING, true],
    ["worker", TaskStatus.SUSPENDED, TaskStatus.PENDING, false],
    ["delegator", TaskStatus.INPUT_REQUIRED, TaskStatus.RUNNING, true],
    ["worker", TaskStatus.INPUT_REQUIRED, TaskStatus.RUNNING, false],
    ["clock", TaskStatus.PENDING, TaskStatus.EXPIRED, true],
    ["worker", TaskStatus.PENDING, TaskStatus.EXPIRED, false],
    ["authority", TaskStatus.ACCEPTED, TaskStatus.REVOKED, true],
    ["worker", TaskStatus.ACCEPTED, TaskStatus.REVOKED, false],
    ["attestation", TaskStatus.PENDING, TaskStatus.COMPLETED, true],
    ["worker", TaskStatus.ACCEPTED, TaskStatus.COMPLETED, true],
    ["worker", TaskStatus.INPUT_REQUIRED, TaskStatus.COMPLETED, false],
    ["worker", TaskStatus.PENDING, TaskStatus.COMPLETED, false],
    ["attestation", TaskStatus.SUSPENDED, TaskStatus.FAILED, true],
    ["attestation", TaskStatus.RUNNING, TaskStatus.IN_REVIEW, true],
    ["attestation", TaskStatus.IN_REVIEW, TaskStatus.COMPLETED, false],
    ["attestation", TaskStatus.IN_REVIEW, TaskStatus.FAILED, false],
    ["attestation", TaskStatus.PENDING, TaskStatus.CANCELLED, false],
  ];
  test.each(owners)("%s %d -> %d: %s", (actor, from, to, allowed) => {
    expect(canTransition(from, to, actor)).toBe(allowed);
  });

  test("a worker holds accepted and running tasks, and those that require input", () => {
    expect(ALL.filter(isHeld).map(statusName)).toEqual(["accepted", "running", "input_required"]);
  });

  test("the refusal names both statuses", () => {
    const error = stateConflict("t1", TaskStatus.COMPLETED, TaskStatus.RUNNING);
    expect(error.reason).toBe(ErrorReason.TASK_STATE_CONFLICT);
    expect(error.metadata).toEqual({ task: "t1", from: "completed", to: "running" });
    expect(error.message).toContain("the task has ended");
  });
});
