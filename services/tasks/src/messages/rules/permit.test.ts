import { create } from "@bufbuild/protobuf";
import { type CapMessage, CapMessageSchema, Verdict } from "@depute/contracts/cap/v1/message_pb";
import { TaskStatus } from "@depute/contracts/depute/tasks/v1/task_pb";
import { DeputeError, reasonName } from "@depute/core";
import { describe, expect, test } from "vitest";
import type { Kind } from "./message.ts";
import { type Facts, permit, type TaskFacts } from "./permit.ts";

const T1: TaskFacts = {
  taskId: "T1",
  delegatorId: "orchestrator",
  agentId: "pm-1",
  overseerId: "",
  status: TaskStatus.RUNNING,
  reviewsId: "",
};
const T11: TaskFacts = {
  ...T1,
  taskId: "T1.1",
  delegatorId: "pm-1",
  agentId: "analyst-1",
  overseerId: "qa-1",
};
const HELD: TaskFacts = { ...T11, status: TaskStatus.IN_REVIEW };
const REVIEW: TaskFacts = {
  ...T1,
  taskId: "T1.1.1",
  delegatorId: "analyst-1",
  agentId: "qa-1",
  reviewsId: "T1.1",
};
const ENDED: TaskFacts = { ...T1, status: TaskStatus.COMPLETED };

const NOTHING: Facts = {
  task: undefined,
  hasOpenParts: false,
  parent: undefined,
  holdersAbove: [],
  subject: undefined,
  isEscalated: false,
  hasLineage: true,
  isKnown: true,
  plainApproval: false,
  carries: "",
  refusesHeld: false,
};
const on = (task: TaskFacts, more: Partial<Facts> = {}): Partial<Facts> => ({ task, subject: task, ...more });
const under = (parent: TaskFacts, ...above: string[]): Partial<Facts> => ({
  parent,
  holdersAbove: [parent.agentId, ...above],
});

type Route = `${string} > ${string} ${string}`;
function parts(route: Route) {
  const [senderId = "", , recipientId = "", taskId = ""] = route.split(" ");
  return { senderId, recipientId, taskId };
}
const say = (route: Route, completesTask?: boolean): Kind =>
  ({
    case: "message",
    value: { ...parts(route), content: "Verified.", ...(completesTask !== undefined && { completesTask }) },
  }) as Kind;
const hand = (route: Route): Kind =>
  ({ case: "delegationNotice", value: { ...parts(route), contextSummary: "do it" } }) as Kind;
const fail = (route: Route): Kind =>
  ({
    case: "errorResponse",
    value: { ...parts(route), errorCode: 504, errorMessage: "MCP timeout." },
  }) as Kind;
const ask = (route: Route): Kind =>
  ({ case: "oversightInquiry", value: { ...parts(route), inquiry: "sure?" } }) as Kind;
const judge = (route: Route, decision: Verdict = Verdict.APPROVED, comment?: string): Kind =>
  ({ case: "oversightDecision", value: { ...parts(route), decision, ...(comment && { comment }) } }) as Kind;

function outcome(kind: Kind, facts: Partial<Facts>): string {
  const message = create(CapMessageSchema, { kind } as CapMessage);
  try {
    const intent = permit(message, { ...NOTHING, ...facts });
    return intent.does === "delegate" && intent.submits ? "delegate and submit" : intent.does;
  } catch (error) {
    if (!(error instanceof DeputeError)) throw error;
    return [reasonName(error.reason), error.metadata.rule].filter(Boolean).join(" ");
  }
}

describe("a sender outside a lineage", () => {
  const fresh: Partial<Facts> = { hasLineage: false, isKnown: false };
  const takenFacts: Partial<Facts> = on(T1, { isKnown: false });

  test.each<[string, Kind, string]>([
    ["may write to a participant", say("x-1 > pm-1 T1"), "say"],
    ["may send an error, which counts as a plain message", fail("x-1 > pm-1 T1"), "say"],
    ["cannot complete a task", say("x-1 > pm-1 T1", true), "MESSAGE_NOT_ALLOWED holder"],
    ["cannot create a root task", hand("x-1 > pm-1 T1"), "MESSAGE_NOT_ALLOWED root"],
    ["cannot delegate a child task", hand("x-1 > pm-1 T1.1"), "TASK_NOT_FOUND"],
    ["cannot name a child task", say("x-1 > pm-1 T1.1"), "TASK_NOT_FOUND"],
    ["cannot inquire", ask("x-1 > pm-1 T1"), "TASK_NOT_FOUND"],
    ["cannot decide", judge("x-1 > pm-1 T1"), "TASK_NOT_FOUND"],
  ])("%s, with equal answers for a new id and an id of other parties", (_name, kind, expected) => {
    expect([outcome(kind, fresh), outcome(kind, takenFacts)]).toEqual([expected, expected]);
  });

  test("is marked as outside if the lineage exists", () => {
    const message = create(CapMessageSchema, { kind: say("x-1 > pm-1 T1") } as CapMessage);
    expect(permit(message, { ...NOTHING, ...takenFacts })).toEqual({ does: "say", fromOutside: true });
    expect(permit(message, { ...NOTHING, ...fresh })).toEqual({ does: "say" });
  });
});

describe("a plain message", () => {
  test.each<[string, Kind, Partial<Facts>, string]>([
    [
      "of a role can open a conversation",
      say("user > orchestrator T1"),
      { hasLineage: false, isKnown: true },
      "say",
    ],
    [
      "of an agent can open a conversation",
      say("pm-1 > x-1 T1"),
      { hasLineage: false, isKnown: false },
      "say",
    ],
    [
      "of an agent cannot open a conversation on a child task",
      say("pm-1 > x-1 T1.1"),
      { hasLineage: false, isKnown: false },
      "TASK_NOT_FOUND",
    ],
    [
      "of a role cannot open a conversation on a child task",
      say("user > pm-1 T1.1"),
      { hasLineage: false, isKnown: true },
      "TASK_NOT_FOUND",
    ],
    ["can go from any participant to any other", say("qa-1 > user T1"), on(T1), "say"],
    ["cannot go to its own sender", say("pm-1 > pm-1 T1"), on(T1), "MESSAGE_NOT_ALLOWED self"],
    ["of a holder without an overseer completes the task", say("pm-1 > orchestrator T1"), on(T1), "complete"],
    [
      "completes nothing while child tasks are open",
      say("pm-1 > orchestrator T1"),
      on(T1, { hasOpenParts: true }),
      "say",
    ],
    [
      "ends open child tasks if it is marked as a result",
      say("pm-1 > orchestrator T1", true),
      on(T1, { hasOpenParts: true }),
      "complete",
    ],
    ["completes nothing if it is marked as no result", say("pm-1 > orchestrator T1", false), on(T1), "say"],
    ["of a holder with an overseer completes nothing", say("analyst-1 > pm-1 T1.1"), on(T11), "say"],
    [
      "of a holder with an overseer submits if it is marked as a result",
      say("analyst-1 > pm-1 T1.1", true),
      on(T11),
      "complete",
    ],
    ["to another participant than the delegator completes nothing", say("pm-1 > user T1"), on(T1), "say"],
    [
      "of another participant than the holder completes nothing",
      say("analyst-1 > orchestrator T1"),
      on(T1),
      "say",
    ],
    ["of an instance does not count for its base", say("pm-1:b > orchestrator T1"), on(T1), "say"],
    [
      "of another participant cannot be marked as a result",
      say("user > orchestrator T1", true),
      on(T1),
      "MESSAGE_NOT_ALLOWED holder",
    ],
    [
      "cannot complete a task twice",
      say("pm-1 > orchestrator T1", true),
      on(ENDED),
      "MESSAGE_NOT_ALLOWED holder",
    ],
    ["after the end changes nothing", say("pm-1 > orchestrator T1"), on(ENDED), "say"],
    ["does not decide a review", say("qa-1 > analyst-1 T1.1.1"), { task: REVIEW, subject: HELD }, "say"],
    [
      "cannot be marked as a review's result",
      say("qa-1 > analyst-1 T1.1.1", true),
      { task: REVIEW, subject: HELD },
      "MESSAGE_RULE_NOT_MET review",
    ],
  ])("%s", (_name, kind, facts, expected) => {
    expect(outcome(kind, facts)).toBe(expected);
  });

  test.each<[string, Kind, Partial<Facts>, string]>([
    [
      "approves if the setting allows it",
      say("qa-1 > pm-1 T1.1.1"),
      { task: REVIEW, subject: HELD },
      "decide",
    ],
    ["approves on either task", say("qa-1 > pm-1 T1.1"), on(HELD), "decide"],
    ["approves by an instance of the overseer", say("qa-1:2 > pm-1 T1.1"), on(HELD), "decide"],
    ["to another recipient approves nothing", say("qa-1 > user T1.1"), on(HELD), "say"],
    ["from another agent approves nothing", say("pm-2 > pm-1 T1.1"), on(HELD), "say"],
    ["before a result approves nothing", say("qa-1 > pm-1 T1.1"), on(T11), "say"],
  ])("of an overseer %s", (_name, kind, facts, expected) => {
    expect(outcome(kind, { ...facts, plainApproval: true })).toBe(expected);
    expect(outcome(kind, facts)).toBe("say");
  });
});

test.each<[string, Kind, Partial<Facts>, string]>([
  ["of the orchestrator creates a root task", hand("orchestrator > pm-1 T1"), {}, "delegate"],
  ["of an agent cannot create a root task", hand("pm-1 > analyst-1 T1"), {}, "MESSAGE_NOT_ALLOWED root"],
  ["cannot come from the user", hand("user > pm-1 T1"), {}, "MESSAGE_NOT_ALLOWED role"],
  ["cannot go to the user", hand("pm-1 > user T1.1"), under(T1), "MESSAGE_NOT_ALLOWED role"],
  ["of a child task comes from the holder", hand("pm-1 > analyst-1 T1.1"), under(T1), "delegate"],
  [
    "of a child task cannot come from the orchestrator",
    hand("orchestrator > qa-1 T1.1"),
    under(T1),
    "MESSAGE_NOT_ALLOWED holder",
  ],
  [
    "cannot come from another instance of the holder",
    hand("pm-1:b > analyst-1 T1.1"),
    under(T1),
    "MESSAGE_NOT_ALLOWED holder",
  ],
  ["needs an existing parent", hand("pm-1 > analyst-1 T1.1"), {}, "TASK_NOT_FOUND"],
  ["needs an open parent", hand("pm-1 > analyst-1 T1.1"), under(ENDED), "TASK_STATE_CONFLICT"],
  [
    "needs a parent without a held result",
    hand("analyst-1 > qa-1 T1.1.1"),
    under(HELD),
    "TASK_STATE_CONFLICT",
  ],
  ["cannot form a cycle", hand("analyst-1 > pm-1 T1.1.1"), under(T11, "pm-1"), "TASK_CYCLE"],
  ["may go to another instance", hand("analyst-1 > pm-1:b T1.1.1"), under(T11, "pm-1"), "delegate"],
  [
    "to the overseer submits the result",
    hand("analyst-1 > qa-1 T1.1.1"),
    under(T11, "pm-1"),
    "delegate and submit",
  ],
  [
    "to an instance of the overseer submits the result",
    hand("analyst-1 > qa-1:b T1.1.1"),
    under(T11, "pm-1"),
    "delegate and submit",
  ],
  [
    "of a review submits nothing",
    hand("qa-1 > boss-1 T1.1.1.1"),
    under({ ...REVIEW, overseerId: "boss-1" }),
    "delegate",
  ],
  [
    "needs an id that the task engine accepts",
    hand(`orchestrator > pm-1 ${"x".repeat(129)}`),
    {},
    "INVALID_REQUEST",
  ],
])("a delegation %s", (_name, kind, facts, expected) => {
  expect(outcome(kind, facts)).toBe(expected);
});

const UNSUCCESSFUL: TaskFacts = { ...T11, status: TaskStatus.FAILED };
describe("a message that carries a held result", () => {
  const carried: Partial<Facts> = { carries: "T1.1" };
  const refused = "MESSAGE_NOT_ALLOWED held_result";

  test.each<[string, Kind, Partial<Facts>, string, string]>([
    [
      "as a plain message is refused only by the setting",
      say("analyst-1 > pm-1 T1.1"),
      on(HELD),
      "say",
      refused,
    ],
    [
      "from outside is refused only by the setting",
      say("x-1 > pm-1 T1"),
      on(T1, { isKnown: false }),
      "say",
      refused,
    ],
    [
      "as an error that counts as a plain message is refused only by the setting",
      fail("analyst-1 > pm-1 T1.1"),
      on(HELD),
      "say",
      refused,
    ],
    [
      "as a result is refused only by the setting",
      say("pm-1 > orchestrator T1"),
      on(T1),
      "complete",
      refused,
    ],
    [
      "as a result that is itself held is allowed",
      say("analyst-1 > pm-1 T1.1", true),
      on(T11),
      "complete",
      "complete",
    ],
    ["as a decision is allowed", judge("qa-1 > pm-1 T1.1"), on(HELD), "decide", "decide"],
  ])("%s", (_name, kind, facts, marked, bySetting) => {
    expect(outcome(kind, { ...facts, ...carried })).toBe(marked);
    expect(outcome(kind, { ...facts, ...carried, refusesHeld: true })).toBe(bySetting);
    expect(outcome(kind, { ...facts, refusesHeld: true })).toBe(marked);
  });
});

const FAILED_REVIEW: TaskFacts = { ...REVIEW, status: TaskStatus.EXPIRED };
const failed = (parent: TaskFacts, task = UNSUCCESSFUL): Partial<Facts> => ({
  task,
  subject: task,
  ...under(parent, "pm-1"),
});

describe("a delegation under the id of an unsuccessful task", () => {
  test.each<[string, Kind, Partial<Facts>, string]>([
    [
      "can come from the parent's holder, to the same agent",
      hand("pm-1 > analyst-1 T1.1"),
      failed(T1),
      "delegate",
    ],
    [
      "can come from the parent's holder, to another agent",
      hand("pm-1 > analyst-2 T1.1"),
      failed(T1),
      "delegate",
    ],
    ["can come from the orchestrator", hand("orchestrator > analyst-2 T1.1"), failed(T1), "delegate"],
    [
      "can come from the orchestrator for a root",
      hand("orchestrator > pm-1 T1"),
      on({ ...T1, status: TaskStatus.EXPIRED }),
      "delegate",
    ],
    [
      "cannot come from another participant",
      hand("qa-1 > analyst-1 T1.1"),
      failed(T1),
      "MESSAGE_NOT_ALLOWED holder",
    ],
    [
      "needs an open parent",
      hand("pm-1 > analyst-1 T1.1"),
      failed({ ...T1, status: TaskStatus.FAILED }),
      "TASK_STATE_CONFLICT",
    ],
    ["cannot form a cycle", hand("orchestrator > pm-1 T1.1"), failed(T1), "TASK_CYCLE"],
    ["cannot come from the user", hand("user > analyst-1 T1.1"), failed(T1), "MESSAGE_NOT_ALLOWED role"],
    [
      "can repeat a review with another instance of the overseer",
      hand("analyst-1 > qa-1:b T1.1.1"),
      failed(HELD, FAILED_REVIEW),
      "delegate",
    ],
    [
      "cannot repeat a review with another agent",
      hand("orchestrator > boss-1 T1.1.1"),
      failed(HELD, FAILED_REVIEW),
      "MESSAGE_NOT_ALLOWED overseer",
    ],
    [
      "by the holder submits the result",
      hand("analyst-1 > qa-1 T1.1.1"),
      failed(T11, FAILED_REVIEW),
      "delegate and submit",
    ],
    [
      "by the orchestrator submits nothing",
      hand("orchestrator > qa-1 T1.1.1"),
      failed(T11, FAILED_REVIEW),
      "delegate",
    ],
  ])("%s", (_name, kind, facts, expected) => {
    expect(outcome(kind, facts)).toBe(expected);
  });

  test.each(Object.values(TaskStatus).filter((status) => typeof status === "number"))(
    "is accepted only after an end without a result: status %i",
    (status) => {
      const { CANCELLED, EXPIRED, FAILED, REJECTED, REVOKED } = TaskStatus;
      const isFree = new Set<TaskStatus>([CANCELLED, EXPIRED, FAILED, REJECTED, REVOKED]).has(status);
      const facts = failed(T1, { ...T11, status });
      for (const kind of [hand("pm-1 > analyst-1 T1.1"), hand("orchestrator > analyst-2 T1.1")]) {
        expect(outcome(kind, facts)).toBe(isFree ? "delegate" : "TASK_ID_TAKEN");
      }
    },
  );
});

test.each<[string, Kind, Partial<Facts>, string]>([
  ["of the holder to the delegator takes effect", fail("analyst-1 > pm-1 T1.1"), on(T11), "report"],
  [
    "of the holder to the orchestrator takes effect",
    fail("analyst-1 > orchestrator T1.1"),
    on(T11),
    "report",
  ],
  ["to another participant has no effect", fail("analyst-1 > user T1.1"), on(T11), "say"],
  ["of another participant has no effect", fail("pm-1 > analyst-1 T1.1"), on(T11), "say"],
  ["after the end has no effect", fail("pm-1 > orchestrator T1"), on(ENDED), "say"],
  ["while the result is reviewed has no effect", fail("analyst-1 > pm-1 T1.1"), on(HELD), "say"],
])("an error_response %s", (_name, kind, facts, expected) => {
  expect(outcome(kind, facts)).toBe(expected);
});

const reviewed: Partial<Facts> = { task: REVIEW, subject: HELD };
test.each<[string, Kind, Partial<Facts>, string]>([
  ["an inquiry of the overseer", ask("qa-1 > analyst-1 T1.1.1"), reviewed, "inquire"],
  ["an inquiry on the reviewed task", ask("qa-1 > analyst-1 T1.1"), on(HELD), "inquire"],
  [
    "an inquiry of another participant",
    ask("pm-1 > analyst-1 T1.1.1"),
    reviewed,
    "MESSAGE_NOT_ALLOWED overseer",
  ],
  ["an inquiry to another recipient", ask("qa-1 > pm-1 T1.1.1"), reviewed, "MESSAGE_NOT_ALLOWED recipient"],
  ["an inquiry before a result", ask("qa-1 > analyst-1 T1.1"), on(T11), "TASK_STATE_CONFLICT"],
  ["a decision of the overseer", judge("qa-1 > analyst-1 T1.1.1"), reviewed, "decide"],
  ["a decision to the delegator", judge("qa-1 > pm-1 T1.1"), on(HELD), "decide"],
  ["a decision to another recipient", judge("qa-1 > user T1.1"), on(HELD), "MESSAGE_NOT_ALLOWED recipient"],
  ["a decision of the delegator", judge("pm-1 > analyst-1 T1.1"), on(HELD), "MESSAGE_NOT_ALLOWED overseer"],
  ["a decision of the author", judge("analyst-1 > pm-1 T1.1"), on(HELD), "MESSAGE_NOT_ALLOWED overseer"],
  [
    "a decision of the orchestrator",
    judge("orchestrator > pm-1 T1.1"),
    on(HELD),
    "MESSAGE_NOT_ALLOWED overseer",
  ],
  [
    "a decision of the orchestrator after the escalation",
    judge("orchestrator > pm-1 T1.1"),
    on(HELD, { isEscalated: true }),
    "decide",
  ],
  [
    "an inquiry of the orchestrator after the escalation",
    ask("orchestrator > analyst-1 T1.1"),
    on(HELD, { isEscalated: true }),
    "MESSAGE_NOT_ALLOWED overseer",
  ],
  [
    "a decision on a task without an overseer",
    judge("qa-1 > pm-1 T1"),
    on(T1),
    "MESSAGE_NOT_ALLOWED overseer",
  ],
  [
    "a decision after the end",
    judge("qa-1 > pm-1 T1.1.1"),
    { task: REVIEW, subject: { ...HELD, status: TaskStatus.COMPLETED } },
    "TASK_STATE_CONFLICT",
  ],
  ["a rejection without a reason", judge("qa-1 > pm-1 T1.1", Verdict.REJECTED), on(HELD), "INVALID_REQUEST"],
  ["a rejection with a reason", judge("qa-1 > pm-1 T1.1", Verdict.REJECTED, "made up"), on(HELD), "decide"],
])("%s", (_name, kind, facts, expected) => {
  expect(outcome(kind, facts)).toBe(expected);
});
