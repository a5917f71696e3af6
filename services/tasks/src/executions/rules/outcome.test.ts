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
  ["started", { case: "started", value: {} }, ACCEPTED, IN_PROGRESS],
  ["started again", { case: "started", value: {} }, IN_PROGRESS, undefined],
  ["accepted by a worker", { case: "accepted", value: {} }, ACCEPTED, undefined],
  ["requeued", { case: "requeued", value: {} }, IN_PROGRESS, undefined],
  ["completed", { case: "completed", value: {} }, IN_PROGRESS, COMPLETED],
  ["failed", { case: "failed", value: failure("X") }, IN_PROGRESS, FAILED, ErrorCode.INTERNAL_ERROR],
  [
    "failed for lack of capacity",
    { case: "failed", value: failure("CAPACITY_UNAVAILABLE") },
    IN_PROGRESS,
    FAILED,
    ErrorCode.CAPACITY_UNAVAILABLE,
  ],
  [
    "failed for an output outside the schema",
    { case: "failed", value: failure("OUTPUT_SCHEMA_VIOLATION") },
    IN_PROGRESS,
    FAILED,
    ErrorCode.VERIFICATION_FAILED,
  ],
  [
    "rejected by an overseer",
    { case: "failed", value: failure("REVIEW_REJECTED") },
    IN_PROGRESS,
    FAILED,
    ErrorCode.VERIFICATION_FAILED,
  ],
  [
    "rejected by the worker",
    { case: "rejected", value: failure("NO") },
    ACCEPTED,
    FAILED,
    ErrorCode.CAPACITY_UNAVAILABLE,
  ],
  [
    "revoked",
    { case: "revoked", value: failure("TOKEN_DENIED") },
    IN_PROGRESS,
    FAILED,
    ErrorCode.INTERNAL_ERROR,
  ],
  [
    "cancelled",
    { case: "cancelled", value: { reason: "" } },
    ACCEPTED,
    CANCELLED,
    ErrorCode.CANCELLED_BY_BUYER,
  ],
  [
    "expired before the start",
    { case: "expired", value: failure("TASK_TIMEOUT") },
    ACCEPTED,
    EXPIRED,
    ErrorCode.EXPIRED_BEFORE_START,
  ],
  [
    "expired after the start",
    { case: "expired", value: failure("TASK_TIMEOUT") },
    IN_PROGRESS,
    EXPIRED,
    ErrorCode.DEADLINE_EXCEEDED,
  ],
];

test.each(CASES)("the receipt for a task that is %s", (_, payload, status, after, code) => {
  const outcome = outcomeOf(event(payload), status);
  expect([outcome?.status, outcome?.error?.code]).toEqual([after, code]);
  if (after !== undefined) expect(canFollow(status, after)).toBe(true);
});
