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

describe("a sender without a part in a lineage", () => {
  const fresh: Partial<Facts> = { hasLineage: false, isKnown: false };
  const takenFacts: Partial<Facts> = on(T1, { isKnown: false });

  test.each<[string, Kind, string]>([
    ["talks to a participant", say("x-1 > pm-1 T1"), "say"],
    ["reports an error of its own as talk", fail("x-1 > pm-1 T1"), "say"],
    ["completes nothing", say("x-1 > pm-1 T1", true), "MESSAGE_NOT_ALLOWED holder"],
    ["begins no tree", hand("x-1 > pm-1 T1"), "MESSAGE_NOT_ALLOWED root"],
    ["delegates no part", hand("x-1 > pm-1 T1.1"), "TASK_NOT_FOUND"],
    ["names no part", say("x-1 > pm-1 T1.1"), "TASK_NOT_FOUND"],
    ["asks as no overseer", ask("x-1 > pm-1 T1"), "TASK_NOT_FOUND"],
    ["decides as no overseer", judge("x-1 > pm-1 T1"), "TASK_NOT_FOUND"],
  ])("%s, and sees no difference between a new id and one of others", (_name, kind, expected) => {
    expect([outcome(kind, fresh), outcome(kind, takenFacts)]).toEqual([expected, expected]);
  });

  test("is marked as one where the lineage exists", () => {
    const message = create(CapMessageSchema, { kind: say("x-1 > pm-1 T1") } as CapMessage);
    expect(permit(message, { ...NOTHING, ...takenFacts })).toEqual({ does: "say", fromOutside: true });
    expect(permit(message, { ...NOTHING, ...fresh })).toEqual({ does: "say" });
  });
});

describe("a plain message", () => {
  test.each<[string, Kind, Partial<Facts>, string]>([
    [
      "opens a conversation, by a role",
      say("user > orchestrator T1"),
      { hasLineage: false, isKnown: true },
      "say",
    ],
    ["opens one, by an agent", say("pm-1 > x-1 T1"), { hasLineage: false, isKnown: false }, "say"],
    [
      "opens none on a part, by an agent",
      say("pm-1 > x-1 T1.1"),
      { hasLineage: false, isKnown: false },
      "TASK_NOT_FOUND",
    ],
    ["opens none on a part", say("user > pm-1 T1.1"), { hasLineage: false, isKnown: true }, "TASK_NOT_FOUND"],
    ["goes from anybody to anybody who has", say("qa-1 > user T1"), on(T1), "say"],
    ["does not go to oneself", say("pm-1 > pm-1 T1"), on(T1), "MESSAGE_NOT_ALLOWED self"],
    ["completes the task of a holder without overseer", say("pm-1 > orchestrator T1"), on(T1), "complete"],
    [
      "is talk while parts of it are open",
      say("pm-1 > orchestrator T1"),
      on(T1, { hasOpenParts: true }),
      "say",
    ],
    [
      "ends them where it says so",
      say("pm-1 > orchestrator T1", true),
      on(T1, { hasOpenParts: true }),
      "complete",
    ],
    ["is talk where it says so", say("pm-1 > orchestrator T1", false), on(T1), "say"],
    ["is talk of a holder with an overseer", say("analyst-1 > pm-1 T1.1"), on(T11), "say"],
    ["hands in where that says so", say("analyst-1 > pm-1 T1.1", true), on(T11), "complete"],
    ["to another than the delegator is talk", say("pm-1 > user T1"), on(T1), "say"],
    ["of another than the holder is talk", say("analyst-1 > orchestrator T1"), on(T1), "say"],
    ["of an instance is not the base's", say("pm-1:b > orchestrator T1"), on(T1), "say"],
    [
      "of another completes nothing",
      say("user > orchestrator T1", true),
      on(T1),
      "MESSAGE_NOT_ALLOWED holder",
    ],
    ["completes nothing twice", say("pm-1 > orchestrator T1", true), on(ENDED), "MESSAGE_NOT_ALLOWED holder"],
    ["after the end is talk", say("pm-1 > orchestrator T1"), on(ENDED), "say"],
    ["does not settle a review", say("qa-1 > analyst-1 T1.1.1"), { task: REVIEW, subject: HELD }, "say"],
    [
      "cannot say that it does",
      say("qa-1 > analyst-1 T1.1.1", true),
      { task: REVIEW, subject: HELD },
      "MESSAGE_RULE_NOT_MET review",
    ],
  ])("%s", (_name, kind, facts, expected) => {
    expect(outcome(kind, facts)).toBe(expected);
  });

  test.each<[string, Kind, Partial<Facts>, string]>([
    ["approves by the setting", say("qa-1 > pm-1 T1.1.1"), { task: REVIEW, subject: HELD }, "decide"],
    ["on either task", say("qa-1 > pm-1 T1.1"), on(HELD), "decide"],
    ["by an instance of the overseer", say("qa-1:2 > pm-1 T1.1"), on(HELD), "decide"],
    ["not to another", say("qa-1 > user T1.1"), on(HELD), "say"],
    ["not by another", say("pm-2 > pm-1 T1.1"), on(HELD), "say"],
    ["not before there is a result", say("qa-1 > pm-1 T1.1"), on(T11), "say"],
  ])("of an overseer %s", (_name, kind, facts, expected) => {
    expect(outcome(kind, { ...facts, plainApproval: true })).toBe(expected);
    expect(outcome(kind, facts)).toBe("say");
  });
});

test.each<[string, Kind, Partial<Facts>, string]>([
  ["of the orchestrator begins a tree", hand("orchestrator > pm-1 T1"), {}, "delegate"],
  ["of an agent begins none", hand("pm-1 > analyst-1 T1"), {}, "MESSAGE_NOT_ALLOWED root"],
  ["is not the user's", hand("user > pm-1 T1"), {}, "MESSAGE_NOT_ALLOWED role"],
  ["is not to the user", hand("pm-1 > user T1.1"), under(T1), "MESSAGE_NOT_ALLOWED role"],
  ["is the holder's", hand("pm-1 > analyst-1 T1.1"), under(T1), "delegate"],
  [
    "is not the orchestrator's below another",
    hand("orchestrator > qa-1 T1.1"),
    under(T1),
    "MESSAGE_NOT_ALLOWED holder",
  ],
  ["is not another instance's", hand("pm-1:b > analyst-1 T1.1"), under(T1), "MESSAGE_NOT_ALLOWED holder"],
  ["needs its parent", hand("pm-1 > analyst-1 T1.1"), {}, "TASK_NOT_FOUND"],
  ["needs it open", hand("pm-1 > analyst-1 T1.1"), under(ENDED), "TASK_STATE_CONFLICT"],
  ["needs it not to be reviewed", hand("analyst-1 > qa-1 T1.1.1"), under(HELD), "TASK_STATE_CONFLICT"],
  ["does not go round", hand("analyst-1 > pm-1 T1.1.1"), under(T11, "pm-1"), "TASK_CYCLE"],
  ["may go to another instance", hand("analyst-1 > pm-1:b T1.1.1"), under(T11, "pm-1"), "delegate"],
  ["to the overseer hands in", hand("analyst-1 > qa-1 T1.1.1"), under(T11, "pm-1"), "delegate and submit"],
  [
    "to an instance of it does, too",
    hand("analyst-1 > qa-1:b T1.1.1"),
    under(T11, "pm-1"),
    "delegate and submit",
  ],
  [
    "of a review hands in nothing",
    hand("qa-1 > boss-1 T1.1.1.1"),
    under({ ...REVIEW, overseerId: "boss-1" }),
    "delegate",
  ],
  [
    "has an id that the engine can have",
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
    ["that is talk", say("analyst-1 > pm-1 T1.1"), on(HELD), "say", refused],
    ["from outside", say("x-1 > pm-1 T1"), on(T1, { isKnown: false }), "say", refused],
    ["that is an error as talk", fail("analyst-1 > pm-1 T1.1"), on(HELD), "say", refused],
    ["that is a result", say("pm-1 > orchestrator T1"), on(T1), "complete", refused],
    ["that is held itself", say("analyst-1 > pm-1 T1.1", true), on(T11), "complete", "complete"],
    ["that decides", judge("qa-1 > pm-1 T1.1"), on(HELD), "decide", "decide"],
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
    ["is the parent's holder's, to the same agent", hand("pm-1 > analyst-1 T1.1"), failed(T1), "delegate"],
    ["and to another", hand("pm-1 > analyst-2 T1.1"), failed(T1), "delegate"],
    ["is the orchestrator's", hand("orchestrator > analyst-2 T1.1"), failed(T1), "delegate"],
    [
      "is the orchestrator's on a root",
      hand("orchestrator > pm-1 T1"),
      on({ ...T1, status: TaskStatus.EXPIRED }),
      "delegate",
    ],
    ["is no other participant's", hand("qa-1 > analyst-1 T1.1"), failed(T1), "MESSAGE_NOT_ALLOWED holder"],
    [
      "needs the parent open",
      hand("pm-1 > analyst-1 T1.1"),
      failed({ ...T1, status: TaskStatus.FAILED }),
      "TASK_STATE_CONFLICT",
    ],
    ["does not go round", hand("orchestrator > pm-1 T1.1"), failed(T1), "TASK_CYCLE"],
    ["is not the user's", hand("user > analyst-1 T1.1"), failed(T1), "MESSAGE_NOT_ALLOWED role"],
    [
      "repeats a review for another instance of the overseer",
      hand("analyst-1 > qa-1:b T1.1.1"),
      failed(HELD, FAILED_REVIEW),
      "delegate",
    ],
    [
      "repeats no review for another agent",
      hand("orchestrator > boss-1 T1.1.1"),
      failed(HELD, FAILED_REVIEW),
      "MESSAGE_NOT_ALLOWED overseer",
    ],
    [
      "hands in by the holder",
      hand("analyst-1 > qa-1 T1.1.1"),
      failed(T11, FAILED_REVIEW),
      "delegate and submit",
    ],
    [
      "hands in nothing by the orchestrator",
      hand("orchestrator > qa-1 T1.1.1"),
      failed(T11, FAILED_REVIEW),
      "delegate",
    ],
  ])("%s", (_name, kind, facts, expected) => {
    expect(outcome(kind, facts)).toBe(expected);
  });

  test.each(Object.values(TaskStatus).filter((status) => typeof status === "number"))(
    "waits for an end without a result: status %i",
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
  ["of the holder to the delegator is carried out", fail("analyst-1 > pm-1 T1.1"), on(T11), "report"],
  ["to the orchestrator is, too", fail("analyst-1 > orchestrator T1.1"), on(T11), "report"],
  ["to another is talk", fail("analyst-1 > user T1.1"), on(T11), "say"],
  ["of another is talk", fail("pm-1 > analyst-1 T1.1"), on(T11), "say"],
  ["after the end is talk", fail("pm-1 > orchestrator T1"), on(ENDED), "say"],
  ["while the result is reviewed is talk", fail("analyst-1 > pm-1 T1.1"), on(HELD), "say"],
])("an error_response %s", (_name, kind, facts, expected) => {
  expect(outcome(kind, facts)).toBe(expected);
});

const reviewed: Partial<Facts> = { task: REVIEW, subject: HELD };
test.each<[string, Kind, Partial<Facts>, string]>([
  ["an inquiry of the overseer", ask("qa-1 > analyst-1 T1.1.1"), reviewed, "inquire"],
  ["an inquiry on the task itself", ask("qa-1 > analyst-1 T1.1"), on(HELD), "inquire"],
  ["an inquiry of another", ask("pm-1 > analyst-1 T1.1.1"), reviewed, "MESSAGE_NOT_ALLOWED overseer"],
  ["an inquiry to another", ask("qa-1 > pm-1 T1.1.1"), reviewed, "MESSAGE_NOT_ALLOWED recipient"],
  ["an inquiry before there is a result", ask("qa-1 > analyst-1 T1.1"), on(T11), "TASK_STATE_CONFLICT"],
  ["a decision of the overseer", judge("qa-1 > analyst-1 T1.1.1"), reviewed, "decide"],
  ["a decision to the delegator", judge("qa-1 > pm-1 T1.1"), on(HELD), "decide"],
  ["a decision to another", judge("qa-1 > user T1.1"), on(HELD), "MESSAGE_NOT_ALLOWED recipient"],
  ["a decision of the delegator", judge("pm-1 > analyst-1 T1.1"), on(HELD), "MESSAGE_NOT_ALLOWED overseer"],
  ["a decision of the author", judge("analyst-1 > pm-1 T1.1"), on(HELD), "MESSAGE_NOT_ALLOWED overseer"],
  [
    "a decision of the orchestrator",
    judge("orchestrator > pm-1 T1.1"),
    on(HELD),
    "MESSAGE_NOT_ALLOWED overseer",
  ],
  [
    "one of it after the escalation",
    judge("orchestrator > pm-1 T1.1"),
    on(HELD, { isEscalated: true }),
    "decide",
  ],
  [
    "an inquiry of it then",
    ask("orchestrator > analyst-1 T1.1"),
    on(HELD, { isEscalated: true }),
    "MESSAGE_NOT_ALLOWED overseer",
  ],
  ["a decision on what nobody oversees", judge("qa-1 > pm-1 T1"), on(T1), "MESSAGE_NOT_ALLOWED overseer"],
  [
    "a decision that comes late",
    judge("qa-1 > pm-1 T1.1.1"),
    { task: REVIEW, subject: { ...HELD, status: TaskStatus.COMPLETED } },
    "TASK_STATE_CONFLICT",
  ],
  ["a rejection without a reason", judge("qa-1 > pm-1 T1.1", Verdict.REJECTED), on(HELD), "INVALID_REQUEST"],
  ["a rejection with one", judge("qa-1 > pm-1 T1.1", Verdict.REJECTED, "made up"), on(HELD), "decide"],
])("%s", (_name, kind, facts, expected) => {
  expect(outcome(kind, facts)).toBe(expected);
});
