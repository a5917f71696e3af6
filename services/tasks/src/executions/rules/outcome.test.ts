import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { ErrorCode, ExecutionStatus } from "@depute/contracts/agenta/delegation/v0/execution_receipt_pb";
import { TaskEventSchema } from "@depute/contracts/depute/tasks/v1/task_event_pb";
import { expect, test } from "vitest";
import { canFollow } from "./machine.ts";
import { outcomeOf } from "./outcome.ts";

type Payload = MessageInitShape<typeof TaskEventSchema>["payload"];
const event = (payload: Payload) => create(TaskEventSchema, { taskId: "t", ...(payload && { payload }) });
const { ACCEPTED, IN_PROGRESS, COMPLETED, FAILED, CANCELLED, EXPIRED } = ExecutionStatus;
const failure = (reason: string) => ({ reason, message: "m", retryable: false });

const CASES: readonly [string, Payload, ExecutionStatus, ExecutionStatus | undefined, ErrorCode?][] = [
  ["begun", { case: "started", value: {} }, ACCEPTED, IN_PROGRESS],
  ["begun again", { case: "started", value: {} }, IN_PROGRESS, undefined],
  ["taken", { case: "accepted", value: {} }, ACCEPTED, undefined],
  ["waiting again", { case: "requeued", value: {} }, IN_PROGRESS, undefined],
  ["done", { case: "completed", value: {} }, IN_PROGRESS, COMPLETED],
  ["failed", { case: "failed", value: failure("X") }, IN_PROGRESS, FAILED, ErrorCode.INTERNAL_ERROR],
  [
    "out of capacity",
    { case: "failed", value: failure("CAPACITY_UNAVAILABLE") },
    IN_PROGRESS,
    FAILED,
    ErrorCode.CAPACITY_UNAVAILABLE,
  ],
  [
    "without a schema's result",
    { case: "failed", value: failure("OUTPUT_SCHEMA_VIOLATION") },
    IN_PROGRESS,
    FAILED,
    ErrorCode.VERIFICATION_FAILED,
  ],
  [
    "turned down by an overseer",
    { case: "failed", value: failure("REVIEW_REJECTED") },
    IN_PROGRESS,
    FAILED,
    ErrorCode.VERIFICATION_FAILED,
  ],
  ["declined", { case: "rejected", value: failure("NO") }, ACCEPTED, FAILED, ErrorCode.CAPACITY_UNAVAILABLE],
  [
    "without authority",
    { case: "revoked", value: failure("TOKEN_DENIED") },
    IN_PROGRESS,
    FAILED,
    ErrorCode.INTERNAL_ERROR,
  ],
  [
    "called off",
    { case: "cancelled", value: { reason: "" } },
    ACCEPTED,
    CANCELLED,
    ErrorCode.CANCELLED_BY_BUYER,
  ],
  [
    "late before the start",
    { case: "expired", value: failure("TASK_TIMEOUT") },
    ACCEPTED,
    EXPIRED,
    ErrorCode.EXPIRED_BEFORE_START,
  ],
  [
    "late after the start",
    { case: "expired", value: failure("TASK_TIMEOUT") },
    IN_PROGRESS,
    EXPIRED,
    ErrorCode.DEADLINE_EXCEEDED,
  ],
];

test.each(CASES)("work that is %s", (_, payload, status, after, code) => {
  const outcome = outcomeOf(event(payload), status);
  expect([outcome?.status, outcome?.error?.code]).toEqual([after, code]);
  if (after !== undefined) expect(canFollow(status, after)).toBe(true);
});
