import type { JsonObject } from "@bufbuild/protobuf";
import { INVITATION_TIMEOUT_MS } from "@depute/asp";
import type { Performative } from "@depute/contracts/asp/v0/envelope_pb";
import { SessionState } from "@depute/contracts/asp/v0/session_pb";
import { ErrorReason, newId } from "@depute/core";
import { as } from "@depute/service/testing";
import { afterEach, beforeEach, expect, test } from "vitest";
import { REASONS } from "../rules/refusals.ts";
import { ANN, BEN, EVE, INVITATION, type Person, refusal, Stage } from "../testing/cast.ts";

let stage: Stage;
beforeEach(async () => {
  stage = await new Stage().start();
});
afterEach(() => stage.stop());

test("only participants see a session, and only the sender appends its messages", async () => {
  const session = await stage.invite();
  const { sessionId } = session;
  const api = stage.api;
  const accept = { envelope: stage.message(BEN, "ACCEPT", { referenceId: "inv" }, session) };
  expect(await refusal(api.getSession({ sessionId }, as(EVE.key)))).toBe("SESSION_NOT_FOUND");
  expect(await refusal(api.listMessages({ sessionId }, as(EVE.key)))).toBe("SESSION_NOT_FOUND");
  expect(await refusal(api.exportTranscript({ sessionId }, as(EVE.key)))).toBe("SESSION_NOT_FOUND");
  expect(await refusal(api.appendMessage(accept, as(EVE.key)))).toBe("SESSION_NOT_FOUND");
  const watched = (async () => {
    for await (const _ of api.watchSession({ sessionId }, as(EVE.key)));
  })();
  expect(await refusal(watched)).toBe("SESSION_NOT_FOUND");
  expect(await refusal(api.appendMessage(accept, as(ANN.key)))).toBe("CALLER_NOT_ALLOWED");
  expect(await refusal(api.listSessions({ agentId: BEN.uri }, as(ANN.key)))).toBe("CALLER_NOT_ALLOWED");
  const foreign = stage.message(BEN, "PROPOSE", INVITATION, newId(), { recipient: ANN.uri });
  expect(await refusal(api.createSession({ invitation: foreign }, as(ANN.key)))).toBe("CALLER_NOT_ALLOWED");
  await api.appendMessage(accept, as(BEN.key));
});

test("a session belongs to the organization of the caller that opens it", async () => {
  const { sessionId, organization } = await stage.invite();
  expect(organization).toBe("acme");
  expect((await stage.session(sessionId, BEN)).organization).toBe("acme");
  const { sessions } = await stage.api.listSessions({ agentId: BEN.uri }, as(BEN.key));
  expect(sessions).toMatchObject([{ sessionId, organization: "acme" }]);
});

test("an unanswered invitation fails, also during a downtime, and watchers are notified", async () => {
  const { sessionId } = await stage.invite();
  const states: SessionState[] = [];
  const watching = (async () => {
    for await (const change of stage.api.watchSession({ sessionId }, as(BEN.key))) states.push(change.state);
  })().catch(() => {});
  await stage.host.whileDown(() => stage.clock.advance(INVITATION_TIMEOUT_MS));
  await watching;
  expect((await stage.session(sessionId)).state).toBe(SessionState.FAILED);
  for await (const change of stage.api.watchSession({ sessionId, afterSequence: 1n }, as(BEN.key))) {
    expect([change.entry, change.state]).toEqual([undefined, SessionState.FAILED]);
  }
});

test("acknowledged messages survive a restart, and a repeated message gets the first answer", async () => {
  const session = await stage.invite();
  const envelope = stage.message(BEN, "ACCEPT", { referenceId: "inv" }, session);
  const first = await stage.api.appendMessage({ envelope }, as(BEN.key));
  await stage.host.whileDown(() => {});
  expect(await stage.api.appendMessage({ envelope }, as(BEN.key))).toEqual(first);
  const { entries } = await stage.api.listMessages({ sessionId: session.sessionId }, as(ANN.key));
  expect(entries.map(({ ordinal }) => ordinal)).toEqual([1, 2]);
  expect(entries[1]?.envelope).toEqual(envelope);
});

test("a session is opened once, and a repetition changes nothing", async () => {
  const sessionId = newId();
  const mine = stage.message(ANN, "PROPOSE", INVITATION, sessionId, { recipient: BEN.uri });
  const api = stage.api;
  const [one, two] = [
    await api.createSession({ invitation: mine }, as(ANN.key)),
    await api.createSession({ invitation: mine }, as(ANN.key)),
  ];
  expect(two).toEqual(one);
  const theirs = stage.message(BEN, "PROPOSE", INVITATION, sessionId, { recipient: ANN.uri });
  expect(await refusal(api.createSession({ invitation: theirs }, as(BEN.key)))).toBe("SESSION_ID_TAKEN");
  const unknown = stage.message(ANN, "PROPOSE", INVITATION, newId(), {
    recipient: "agent://no.example/x/nobody",
  });
  expect(await refusal(api.createSession({ invitation: unknown }, as(ANN.key)))).toBe("AGENT_NOT_FOUND");
});

test("an agent that is hidden from the caller can be neither invited nor listed", async () => {
  stage.hidden.push({ agent: "ben", from: ANN.key });
  const api = stage.api;
  const hidden = stage.message(ANN, "PROPOSE", INVITATION, newId(), { recipient: BEN.uri });
  expect(await refusal(api.createSession({ invitation: hidden }, as(ANN.key)))).toBe("AGENT_NOT_FOUND");
  expect(await refusal(api.listSessions({ agentId: BEN.uri }, as(ANN.key)))).toBe("AGENT_NOT_FOUND");
  const stranger = stage.message(EVE, "PROPOSE", INVITATION, newId(), { recipient: BEN.uri });
  await api.createSession({ invitation: stranger }, as(EVE.key));
});

test("concurrent appends get the current head until all succeed, and all watchers see one order", async () => {
  let session = await stage.invite();
  const api = stage.api;
  const say = async (person: Person, performative: "ACCEPT" | "INFORM" | "OBSERVE", body: JsonObject) => {
    for (let attempt = 0; ; attempt++) {
      const { session: now } = await api.getSession({ sessionId: session.sessionId }, as(person.key));
      if (now === undefined) throw new Error("no session");
      session = now;
      const refused = await refusal(
        api.appendMessage({ envelope: stage.message(person, performative, body, now) }, as(person.key)),
      );
      if (refused === "nothing was refused") return;
      expect(["SESSION_HEAD_MOVED"]).toContain(refused);
      expect(attempt).toBeLessThan(100);
    }
  };
  await say(BEN, "ACCEPT", { referenceId: "inv" });
  for (const person of [ANN, BEN])
    await say(person, "INFORM", { informType: "identity", data: { agentId: person.uri, name: "n" } });
  const rounds = Array.from({ length: 5 });
  await Promise.all(
    [ANN, BEN].map(async (person) => {
      for (const _ of rounds) await say(person, "OBSERVE", {});
    }),
  );
  const { transcript } = await api.exportTranscript({ sessionId: session.sessionId }, as(ANN.key));
  expect(transcript?.messages.length).toBe(14);
  expect(
    (await api.verifyTranscript({ transcript: transcript as NonNullable<typeof transcript> }, as(EVE.key)))
      .valid,
  ).toBe(true);
});

test("a new participant sees the session, and a removed one no longer does", async () => {
  const session = await stage.invite();
  const { sessionId } = session;
  const api = stage.api;
  const say = async (person: Person, performative: keyof typeof Performative, body: JsonObject) => {
    const { session: now } = await api.getSession({ sessionId }, as(person.key));
    const envelope = stage.message(person, performative, body, now ?? sessionId);
    await api.appendMessage({ envelope }, as(person.key));
  };
  await say(BEN, "ACCEPT", { referenceId: "inv" });
  for (const person of [ANN, BEN]) {
    await say(person, "INFORM", { informType: "identity", data: { agentId: person.uri, name: "n" } });
  }
  await say(ANN, "OBSERVE", {});
  const delegation = { delegationId: "del", targetAgent: EVE.uri, scope: "s", authority: "advisory" };
  await say(BEN, "DELEGATE", delegation);
  const seenSequences: number[] = [];
  const watching = (async () => {
    for await (const { entry } of api.watchSession({ sessionId }, as(EVE.key)))
      seenSequences.push(entry?.ordinal ?? 0);
  })();
  const ended = refusal(watching);
  await say(EVE, "ACCEPT", { referenceId: "del" });
  await say(BEN, "WITHDRAW", { referenceId: "del" });
  expect(await ended).toBe("SESSION_NOT_FOUND");
  expect(seenSequences).toEqual([1, 2, 3, 4, 5, 6, 7, 8]);
  expect(await refusal(api.getSession({ sessionId }, as(EVE.key)))).toBe("SESSION_NOT_FOUND");
});

test("every refusal of the protocol has its own reason", () => {
  expect(Object.values(REASONS)).not.toContain(ErrorReason.INTERNAL);
  expect(Object.values(REASONS)).not.toContain(undefined);
});
