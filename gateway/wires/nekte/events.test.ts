import { create, fromJson, type MessageInitShape } from "@bufbuild/protobuf";
import { ValueSchema } from "@bufbuild/protobuf/wkt";
import { TaskEventSchema } from "@depute/contracts/depute/tasks/v1/task_event_pb";
import { TaskStatus as S } from "@depute/contracts/depute/tasks/v1/task_pb";
import { DelegateEventSchema, TokenBudgetSchema } from "@depute/contracts/nekte/v1/nekte_pb";
import { DeputeError, ErrorReason, toTimestamp } from "@depute/core";
import { assertValid } from "@depute/service";
import { describe, expect, test } from "vitest";
import { frame } from "../../edge/sse.ts";
import { toDelegateEvent, toError, toSse, viewAfter } from "./events.ts";

const BEGAN = Date.UTC(2026, 0, 15, 10, 30);
const VIEW = { taskId: "task-001", budget: undefined, beganMs: BEGAN, wasRequeued: false };
const value = (json: Parameters<typeof fromJson>[1]) => fromJson(ValueSchema, json);
const failure = (reason: string, message: string) => ({ reason, message, retryable: false });

type Init = MessageInitShape<typeof TaskEventSchema>;
const OUTPUT = { full: value({ a: 1, b: 2 }), compact: value({ a: 1 }), minimal: "65% positive" };

const CASES: [name: string, event: Init, text: string | undefined][] = [
  [
    "a creation has no event",
    { status: S.PENDING, payload: { case: "created", value: { delegator: "local", agentId: "a" } } },
    undefined,
  ],
  [
    "an acceptance by a worker",
    {
      previousStatus: S.PENDING,
      status: S.ACCEPTED,
      payload: { case: "accepted", value: { worker: "w", attempt: 1 } },
    },
    undefined,
  ],
  [
    "a start",
    { previousStatus: S.ACCEPTED, status: S.RUNNING, payload: { case: "started", value: { attempt: 1 } } },
    undefined,
  ],
  [
    "a requeued task",
    {
      previousStatus: S.RUNNING,
      status: S.PENDING,
      payload: { case: "requeued", value: { cause: failure("LEASE_LOST", "gone"), attempt: 1 } },
    },
    undefined,
  ],
  [
    "a requeued task before its start",
    {
      previousStatus: S.ACCEPTED,
      status: S.PENDING,
      payload: { case: "requeued", value: { cause: failure("RELEASED", "given back"), attempt: 1 } },
    },
    undefined,
  ],
  [
    "a request for changes",
    {
      previousStatus: S.IN_REVIEW,
      status: S.PENDING,
      payload: { case: "changesRequested", value: { comment: "shorter", attempt: 1 } },
    },
    undefined,
  ],
  [
    "suspended",
    {
      previousStatus: S.RUNNING,
      status: S.SUSPENDED,
      payload: { case: "suspended", value: { reason: "later", checkpointAvailable: true, attempt: 1 } },
    },
    'event: suspended\ndata: {"task_id":"task-001","checkpoint_available":true}\n',
  ],
  [
    "resumed",
    {
      previousStatus: S.SUSPENDED,
      status: S.PENDING,
      payload: { case: "resumed", value: { fromCheckpoint: true } },
    },
    'event: resumed\ndata: {"task_id":"task-001","from_checkpoint":true}\n',
  ],
  [
    "progress",
    {
      previousStatus: S.RUNNING,
      status: S.RUNNING,
      payload: { case: "progress", value: { processed: 50, total: 500, message: "Processing batch 1" } },
    },
    'event: progress\ndata: {"processed":50,"total":500,"message":"Processing batch 1"}\n',
  ],
  [
    "progress without a message",
    {
      previousStatus: S.RUNNING,
      status: S.RUNNING,
      payload: { case: "progress", value: { processed: 0, total: 0 } },
    },
    'event: progress\ndata: {"processed":0,"total":0}\n',
  ],
  [
    "a preliminary result",
    {
      previousStatus: S.RUNNING,
      status: S.RUNNING,
      payload: {
        case: "partial",
        value: { output: value({ preliminary_score: 0.72 }), resolvedLevel: "compact" },
      },
    },
    'event: partial\ndata: {"out":{"preliminary_score":0.72},"resolved_level":"compact"}\n',
  ],
  [
    "the result",
    {
      previousStatus: S.RUNNING,
      status: S.COMPLETED,
      payload: { case: "completed", value: { output: OUTPUT } },
    },
    'event: complete\ndata: {"task_id":"task-001","out":{"minimal":"65% positive","compact":{"a":1}},' +
      '"meta":{"ms":2500,"tokens_used":2},"status":"completed"}\n',
  ],
  [
    "a result that exceeds the budget",
    {
      previousStatus: S.RUNNING,
      status: S.COMPLETED,
      payload: { case: "completed", value: { output: { full: value("x".repeat(2004)) } } },
    },
    'event: error\ndata: {"task_id":"task-001","code":-32003,' +
      '"message":"the shortest form of the result needs 501 tokens, and the budget allows 500: repeat the call with a larger budget"}\n',
  ],
  [
    "cancelled",
    {
      previousStatus: S.RUNNING,
      status: S.CANCELLED,
      payload: { case: "cancelled", value: { reason: "User requested" } },
    },
    'event: cancelled\ndata: {"task_id":"task-001","reason":"User requested","previous_status":"running"}\n',
  ],
  [
    "a failure, for every status text of the worker",
    {
      previousStatus: S.RUNNING,
      status: S.FAILED,
      payload: { case: "failed", value: failure("TASK_NOT_FOUND", "no lexicon") },
    },
    'event: error\ndata: {"task_id":"task-001","code":-32007,"message":"no lexicon"}\n',
  ],
  [
    "a failure of the contract's verification",
    {
      previousStatus: S.RUNNING,
      status: S.FAILED,
      payload: { case: "failed", value: failure("VERIFICATION_FAILED", "not passed") },
      verification: { method: "schema_match", passed: false },
    },
    'event: error\ndata: {"task_id":"task-001","code":-32008,"message":"not passed"}\n',
  ],
  [
    "declined",
    {
      previousStatus: S.ACCEPTED,
      status: S.REJECTED,
      payload: { case: "rejected", value: failure("BUSY", "") },
    },
    'event: error\ndata: {"task_id":"task-001","code":-32007,"message":"BUSY"}\n',
  ],
  [
    "an expired task",
    {
      previousStatus: S.RUNNING,
      status: S.EXPIRED,
      payload: { case: "expired", value: failure("TASK_TIMEOUT", "too late") },
    },
    'event: error\ndata: {"task_id":"task-001","code":-32006,"message":"too late"}\n',
  ],
  [
    "revoked",
    {
      previousStatus: S.RUNNING,
      status: S.REVOKED,
      payload: { case: "revoked", value: failure("TOKEN_DENIED", "taken back") },
    },
    'event: error\ndata: {"task_id":"task-001","code":-32052,"message":"taken back"}\n',
  ],
];

describe("a task's events in NEKTE's form", () => {
  test.each(CASES)("%s", (_, init, text) => {
    const event = create(TaskEventSchema, { sequence: 7n, eventTime: toTimestamp(BEGAN + 2500), ...init });
    const converted = toDelegateEvent(event, VIEW);
    expect(converted === undefined ? undefined : frame(toSse({ event: converted, sequence: 7n }))).toBe(
      text === undefined ? undefined : `id: 7\n${text}\n`,
    );
    if (converted !== undefined) assertValid(DelegateEventSchema, converted);
  });

  test.each([
    ["accepted", S.PENDING, S.ACCEPTED, { case: "accepted", value: { worker: "w", attempt: 2 } }, undefined],
    ["started", S.ACCEPTED, S.RUNNING, { case: "started", value: { attempt: 2 } }, undefined],
    ["cancelled", S.PENDING, S.CANCELLED, { case: "cancelled", value: { reason: "" } }, "running"],
  ] as const)(
    "a requeued task stays running for the client: %s",
    (_, previousStatus, status, payload, previous) => {
      const event = create(TaskEventSchema, { sequence: 9n, previousStatus, status, payload });
      const converted = toDelegateEvent(event, { ...VIEW, wasRequeued: true })?.event;
      expect(converted?.case === "cancelled" ? converted.value.previousStatus : converted).toBe(previous);
    },
  );

  test("a resumed task can have another budget from then on", () => {
    const budget = create(TokenBudgetSchema, { maxTokens: 7, detailLevel: "minimal" });
    const resumed = (value: { budget?: typeof budget }) =>
      create(TaskEventSchema, { payload: { case: "resumed", value } });
    const view = viewAfter(resumed({ budget }), VIEW);
    expect(view).toMatchObject({ wasRequeued: true, budget: { maxTokens: 7, detailLevel: "minimal" } });
    expect(viewAfter(resumed({}), view).budget).toEqual(view.budget);
  });

  test("an error of the stream has no position in the log, and no internal text", () => {
    const broken = toError(new TypeError("secret-of-the-house"), "task-001");
    expect(frame(toSse({ event: create(DelegateEventSchema, { event: broken }) }))).toBe(
      'event: error\ndata: {"task_id":"task-001","code":-32603,"message":"internal error"}\n\n',
    );
    const unavailable = toError(
      DeputeError.received(ErrorReason.DEPENDENCY_UNAVAILABLE, "tasks is away"),
      "task-001",
    );
    expect(unavailable.value).toMatchObject({ code: -32057, message: "tasks is away" });
  });
});
