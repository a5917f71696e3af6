import { toJson } from "@bufbuild/protobuf";
import { ValueSchema } from "@bufbuild/protobuf/wkt";
import { evidenceReference, verifyEvidence } from "@depute/asp";
import type { Session } from "@depute/contracts/asp/v0/session_pb";
import type { TaskEvent } from "@depute/contracts/depute/tasks/v1/task_event_pb";
import { TaskStatus } from "@depute/contracts/depute/tasks/v1/task_pb";
import { TaskService } from "@depute/contracts/depute/tasks/v1/task_service_pb";
import { WorkerService } from "@depute/contracts/depute/tasks/v1/worker_service_pb";
import { newId } from "@depute/core";
import { portableEngine } from "@depute/dct";
import { as } from "@depute/service/testing";
import { afterEach, beforeEach, expect, test } from "vitest";
import { ANN, BEN, EVE, INVITATION, type Person, refusalCode, Stage, ZOE } from "../testing/cast.ts";

let stage: Stage;
beforeEach(async () => {
  stage = await new Stage().start();
});
afterEach(() => stage.stop());

const REPORT = {
  informType: "result",
  subject: "verified",
  data: { iso27001: { status: "valid", registryConfirmed: true } },
  references: ["del"],
};

/** Lets Ben delegate work to Eve. */
async function delegated(authority = "advisory"): Promise<Session> {
  const session = await stage.introduced();
  await stage.say(ANN, "OBSERVE", {}, session);
  const body = {
    delegationId: "del",
    targetAgent: EVE.uri,
    scope: "Verify.",
    context: { organization: "org:acme" },
    authority,
    returnTo: BEN.uri,
  };
  await stage.say(BEN, "DELEGATE", body, session);
  return session;
}

function watch({ sessionId }: Session, person: Person, delegationId = "del") {
  const events: TaskEvent[] = [];
  const request = { sessionId, delegationId };
  const over = (async () => {
    for await (const { taskEvent: event } of stage.api.watchDelegation(request, as(person.key))) {
      if (event !== undefined) events.push(event);
    }
  })();
  // The rejection is reported when the test awaits `over`. Until then it must not count as unhandled.
  over.catch(() => {});
  return { events, over };
}

const cases = (events: readonly TaskEvent[]) => events.map(({ payload }) => payload.case);

/** Lets Eve's worker take the assignment. */
async function take() {
  const workers = stage.host.client(WorkerService);
  const { assignments } = await workers.takeAssignments({ agentId: "eve", worker: "w" }, as(EVE.key));
  const [assignment] = assignments;
  if (assignment === undefined) throw new Error("there is no work");
  return assignment;
}

test("an accepted delegation is a task of the delegate, and every participant sees its events to the end", async () => {
  const session = await delegated();
  const watched = [ANN, BEN].map((person) => watch(session, person));
  await stage.say(EVE, "ACCEPT", { referenceId: "del" }, session);
  const { task, lease } = await take();
  expect(task?.input && toJson(ValueSchema, task.input)).toEqual({
    sessionId: session.sessionId,
    delegationId: "del",
    scope: "Verify.",
    context: { organization: "org:acme" },
    authority: "advisory",
    delegator: BEN.uri,
    returnTo: BEN.uri,
  });
  const workers = stage.host.client(WorkerService);
  await workers.startAssignment({ lease }, as(EVE.key));
  await workers.reportProgress({ lease, progress: { processed: 1, total: 2 } }, as(EVE.key));
  await stage.say(EVE, "INFORM", REPORT, session);
  for (const { events, over } of [...watched, watch(session, EVE)]) {
    await over;
    expect(cases(events)).toEqual(["created", "accepted", "started", "progress", "completed"]);
    const last = events.at(-1)?.payload;
    const full = last?.case === "completed" ? last.value.output?.full : undefined;
    expect(full && toJson(ValueSchema, full)).toEqual(REPORT.data);
  }
  // The delegator may read the task itself. The other party sees only the events that the session shows.
  const tasks = stage.host.client(TaskService);
  const request = { taskId: task?.id ?? "" } as const;
  expect((await tasks.getTask(request, as(BEN.key))).task?.status).toBe(TaskStatus.COMPLETED);
  // The organization that owns the session also owns the task, although the delegator belongs to another organization.
  expect((await tasks.getTask(request, as(BEN.key))).task?.organization).toBe("acme");
  expect((await refusalCode(tasks.getTask(request, as(ANN.key))))[0]).toBe("TASK_NOT_FOUND");
});

test("a report completes a task that no worker took, also if it precedes the task", async () => {
  const session = await delegated();
  await stage.say(EVE, "ACCEPT", { referenceId: "del" }, session);
  await stage.say(EVE, "INFORM", REPORT, session);
  const { events, over } = watch(session, ANN);
  await over;
  expect(cases(events)).toEqual(["created", "accepted", "started", "completed"]);
});

test.each<[string, (session: Session) => Promise<unknown>]>([
  [
    "the delegator withdraws the delegation",
    (session) => stage.say(BEN, "WITHDRAW", { referenceId: "del" }, session),
  ],
  ["the delegate withdraws", (session) => stage.say(EVE, "WITHDRAW", { referenceId: "del" }, session)],
  ["the delegate leaves", (session) => stage.say(EVE, "CLOSE", {}, session)],
  [
    "the parties close the session",
    async (session) => {
      await stage.say(ANN, "CLOSE", {}, session);
      await stage.say(BEN, "CLOSE", {}, session);
    },
  ],
  [
    "the session lapses",
    (session) => stage.host.whileDown(() => stage.clock.advance(900_000)).then(() => session),
  ],
])("the task is cancelled when %s", async (_, end) => {
  const session = await delegated();
  await stage.say(EVE, "ACCEPT", { referenceId: "del" }, session);
  const { task } = await take();
  await end(session);
  const tasks = stage.host.client(TaskService);
  const { task: ended } = await tasks.waitTask({ taskId: task?.id ?? "" }, as(BEN.key));
  expect([ended?.status, ended?.failure?.message]).toEqual([
    TaskStatus.CANCELLED,
    "the delegation has ended without a report",
  ]);
});

test("an agent cannot delegate if its manifest forbids it", async () => {
  stage.restricted.add(BEN.uri);
  expect((await refusalCode(delegated()))[0]).toBe("CALLER_NOT_ALLOWED");
});

test("an id can be the name of a member of every object", async () => {
  const session = await stage.introduced();
  await stage.say(ANN, "OBSERVE", {}, session);
  const body = { delegationId: "__proto__", targetAgent: EVE.uri, scope: "s", authority: "advisory" };
  await stage.say(BEN, "DELEGATE", body, session);
  await stage.say(EVE, "ACCEPT", { referenceId: "__proto__" }, session);
  await stage.say(EVE, "INFORM", { informType: "result", references: ["__proto__"] }, session);
  const { events, over } = watch(session, ANN, "__proto__");
  await over;
  expect(cases(events)).toEqual(["created", "accepted", "started", "completed"]);
});

test("a refused request creates no task, and no other watcher sees events", async () => {
  const session = await delegated();
  const { sessionId } = session;
  const { events, over } = watch(session, ANN);
  await stage.say(EVE, "REJECT", { referenceId: "del" }, session);
  await over;
  expect(events).toEqual([]);
  expect(await refusalCode(watch(session, ANN, "inv").over)).toEqual([
    "SESSION_DELEGATION_NOT_FOUND",
    undefined,
  ]);
  expect((await refusalCode(watch(session, EVE).over))[0]).toBe("SESSION_NOT_FOUND");
  expect((await refusalCode(stage.api.getEvidence({ sessionId, delegationId: "del" }, as(ANN.key))))[0]).toBe(
    "SESSION_DELEGATION_NOT_FOUND",
  );
});

test("a report is signed evidence with its verifier, time and the registries' facts, for other sessions", async () => {
  const session = await delegated();
  const { sessionId } = session;
  await stage.say(EVE, "ACCEPT", { referenceId: "del" }, session);
  await stage.say(EVE, "INFORM", REPORT, session);
  const place = { sessionId, delegationId: "del" };
  const { evidence } = await stage.api.getEvidence(place, as(ANN.key));
  expect(evidence).toMatchObject({
    verifier: EVE.uri,
    delegator: BEN.uri,
    delegationId: "del",
    verifiedAt: "2026-03-07T15:00:00.000Z",
    scope: "Verify.",
    confirmations: { iso27001: true },
  });
  const keyOf = (uri: string) => (uri === EVE.uri ? EVE.key : undefined);
  expect(evidence && verifyEvidence(portableEngine, evidence, keyOf)).toBe(true);
  const { evidence: listed } = await stage.api.listEvidence({ agentId: ANN.uri }, as(ANN.key));
  expect(listed).toEqual([evidence]);

  // Eve meets Ann in another session. Ann and Eve may not show the evidence to other agents yet.
  const other = stage.message(ANN, "PROPOSE", INVITATION, newId(), { recipient: EVE.uri });
  await stage.api.createSession({ invitation: other }, as(ANN.key));
  const second = await stage.session(other.sessionId);
  await stage.say(EVE, "ACCEPT", { referenceId: "inv" }, second);
  for (const person of [ANN, EVE]) {
    const data = { agentId: person.uri, name: "n" };
    await stage.say(person, "INFORM", { informType: "identity", data }, second);
  }
  const factWith = (reference: string) => ({ informType: "fact", references: [reference] });
  for (const nothing of [
    { sessionId, delegationId: "other" },
    { sessionId: other.sessionId, delegationId: "del" },
    { sessionId: newId(), delegationId: "del" },
  ]) {
    expect(await refusalCode(stage.say(ANN, "INFORM", factWith(evidenceReference(nothing)), second))).toEqual(
      ["SESSION_STATE_CONFLICT", "unknown_evidence"],
    );
  }
  await stage.say(ANN, "INFORM", factWith(evidenceReference(place)), second);
  expect((await stage.session(other.sessionId)).messageCount).toBe(5);
});

test("evidence is visible to the recipients alone", async () => {
  const session = await delegated();
  const { sessionId } = session;
  const place = { sessionId, delegationId: "del" };
  await stage.say(EVE, "ACCEPT", { referenceId: "del" }, session);
  await stage.say(EVE, "INFORM", REPORT, session);
  expect((await refusalCode(stage.api.getEvidence(place, as(ZOE.key))))[0]).toBe(
    "SESSION_DELEGATION_NOT_FOUND",
  );
  const other = stage.message(ANN, "PROPOSE", INVITATION, newId(), { recipient: ZOE.uri });
  await stage.api.createSession({ invitation: other }, as(ANN.key));
  const second = await stage.session(other.sessionId);
  await stage.say(ZOE, "ACCEPT", { referenceId: "inv" }, second);
  for (const person of [ANN, ZOE]) {
    const data = { agentId: person.uri, name: "n" };
    await stage.say(person, "INFORM", { informType: "identity", data }, second);
  }
  const reference = { informType: "fact", references: [evidenceReference(place)] };
  expect((await refusalCode(stage.say(ZOE, "INFORM", reference, second)))[1]).toBe("unknown_evidence");
  await stage.say(ANN, "INFORM", reference, second);
  expect((await stage.api.getEvidence(place, as(ZOE.key))).evidence?.verifier).toBe(EVE.uri);
});
