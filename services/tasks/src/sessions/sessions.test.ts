import { create, type JsonObject, type JsonValue } from "@bufbuild/protobuf";
import { INVITATION_TIMEOUT_MS, seal } from "@depute/asp";
import { type Envelope, EnvelopeSchema, type Performative } from "@depute/contracts/asp/v0/envelope_pb";
import { type Session, SessionState } from "@depute/contracts/asp/v0/session_pb";
import { AgentStatus } from "@depute/contracts/depute/registry/v1/agent_pb";
import { AgentService } from "@depute/contracts/depute/registry/v1/agent_service_pb";
import { SessionService } from "@depute/contracts/depute/tasks/v1/session_service_pb";
import {
  DeputeError,
  ErrorReason,
  encodeBase64Url,
  formatTime,
  ManualClock,
  newId,
  reasonName,
} from "@depute/core";
import { nativeEngine } from "@depute/dct/native";
import { defineService, fromConnectError } from "@depute/service";
import { as, startTestHost, type TestHost } from "@depute/service/testing";
import { decode } from "@depute/wire";
import { afterEach, beforeEach, expect, test } from "vitest";
import { tasks } from "../index.ts";
import { REASONS } from "./refusals.ts";

const person = (name: string) => {
  const seed = nativeEngine.sha256(new TextEncoder().encode(name));
  return {
    uri: `agent://${name}.example/desk/${name}`,
    seed,
    key: encodeBase64Url(nativeEngine.publicKey(seed)),
  };
};
const [ANN, BEN, EVE] = [person("ann"), person("ben"), person("eve")];
const CAST = [ANN, BEN, EVE];

/** From whom an agent is hidden. */
const HIDDEN: { agent: string; from: string }[] = [];

/** The registry, as far as sessions ask it: nobody has a score. */
const registry = defineService({
  name: "registry",
  settings: {},
  descriptors: [],
  start: async () => ({
    routes(router) {
      router.service(AgentService, {
        getAgent({ id, viewer }) {
          const found = CAST.find(({ uri }) => uri.endsWith(`/${id}`));
          const isHidden = HIDDEN.some((pair) => pair.agent === id && pair.from === viewer);
          if (found === undefined || isHidden)
            throw new DeputeError(ErrorReason.AGENT_NOT_FOUND, "no such agent");
          return { agent: { id, principal: found.key, status: AgentStatus.ACTIVE } };
        },
      });
    },
    close: async () => {},
  }),
});

const sessionsOf = ({ client }: TestHost) => client(SessionService);

let host: TestHost;
let clock: ManualClock;
beforeEach(async () => {
  clock = new ManualClock(Date.parse("2026-03-07T15:00:00.000Z"));
  const fakes = [registry, ...(["tokens", "verifier"] as const).map(nothing)];
  host = await startTestHost({ module: tasks, fakes, clock, principals: CAST.map(({ key }) => key) });
});
afterEach(() => {
  HIDDEN.length = 0;
  return host.stop();
});

function nothing(name: "tokens" | "verifier") {
  return defineService({
    name,
    settings: {},
    descriptors: [],
    start: async () => ({ routes: () => {}, close: async () => {} }),
  });
}

function message(
  { uri, seed }: typeof ANN,
  performative: keyof typeof Performative,
  body: JsonObject,
  session: Session | string,
  recipient?: string,
): Envelope {
  const known = typeof session === "string" ? undefined : session;
  const sequence = known?.participants.find(({ agentId }) => agentId === uri)?.nextSequenceNumber ?? 0n;
  const document: JsonValue = {
    version: "asp/0.1",
    messageId: newId(),
    sessionId: typeof session === "string" ? session : session.sessionId,
    sequenceNumber: Number(sequence),
    timestamp: formatTime(clock.now()),
    sender: { agentId: uri, orgId: "org", trustScore: 50, dpopProof: "e30.e30.e30" },
    ...(recipient === undefined ? {} : { recipient }),
    performative,
    content: { mimeType: "application/asp+json", body },
    integrity: {
      hash: `sha256:${"0".repeat(64)}`,
      previousHash: known?.lastHash ?? `sha256:${"0".repeat(64)}`,
      signature: `ed25519:${"0".repeat(128)}`,
    },
  };
  const decoded = decode(EnvelopeSchema, document);
  if (!decoded.ok) throw new Error(decoded.error.message);
  return seal(nativeEngine, create(EnvelopeSchema, decoded.message), seed);
}

const invitation = { proposalId: "inv", type: "session-invitation", subject: "s" };

async function invite(): Promise<Session> {
  const envelope = message(ANN, "PROPOSE", invitation, newId(), BEN.uri);
  const { session } = await sessionsOf(host).createSession({ invitation: envelope }, as(ANN.key));
  if (session === undefined) throw new Error("no session");
  return session;
}

async function refusal(call: Promise<unknown>): Promise<string> {
  return call.then(
    () => "nothing was refused",
    (thrown: unknown) => reasonName(fromConnectError(thrown).reason),
  );
}

const state = async (sessionId: string) =>
  (await sessionsOf(host).getSession({ sessionId }, as(ANN.key))).session?.state;

test("only participants see a session, and nobody speaks for another", async () => {
  const session = await invite();
  const { sessionId } = session;
  const api = sessionsOf(host);
  const accept = { envelope: message(BEN, "ACCEPT", { referenceId: "inv" }, session) };
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
  const foreign = message(BEN, "PROPOSE", invitation, newId(), ANN.uri);
  expect(await refusal(api.createSession({ invitation: foreign }, as(ANN.key)))).toBe("CALLER_NOT_ALLOWED");
  await api.appendMessage(accept, as(BEN.key));
});

test("an invitation that nobody answers fails, whether or not anybody runs then, and watchers hear of it", async () => {
  const { sessionId } = await invite();
  const states: SessionState[] = [];
  const watching = (async () => {
    for await (const told of sessionsOf(host).watchSession({ sessionId }, as(BEN.key)))
      states.push(told.state);
  })().catch(() => {});
  await host.whileDown(() => clock.advance(INVITATION_TIMEOUT_MS));
  await watching;
  expect(await state(sessionId)).toBe(SessionState.FAILED);
  for await (const told of sessionsOf(host).watchSession({ sessionId, afterOrdinal: 1 }, as(BEN.key))) {
    expect([told.entry, told.state]).toEqual([undefined, SessionState.FAILED]);
  }
});

test("what was acknowledged is there after a restart, and a repeated message gets the first answer", async () => {
  const session = await invite();
  const envelope = message(BEN, "ACCEPT", { referenceId: "inv" }, session);
  const first = await sessionsOf(host).appendMessage({ envelope }, as(BEN.key));
  await host.whileDown(() => {});
  expect(await sessionsOf(host).appendMessage({ envelope }, as(BEN.key))).toEqual(first);
  const { entries } = await sessionsOf(host).listMessages({ sessionId: session.sessionId }, as(ANN.key));
  expect(entries.map(({ ordinal }) => ordinal)).toEqual([1, 2]);
  expect(entries[1]?.envelope).toEqual(envelope);
});

test("a session is opened once, and repeating that changes nothing", async () => {
  const sessionId = newId();
  const mine = message(ANN, "PROPOSE", invitation, sessionId, BEN.uri);
  const api = sessionsOf(host);
  const [one, two] = [
    await api.createSession({ invitation: mine }, as(ANN.key)),
    await api.createSession({ invitation: mine }, as(ANN.key)),
  ];
  expect(two).toEqual(one);
  const theirs = message(BEN, "PROPOSE", invitation, sessionId, ANN.uri);
  expect(await refusal(api.createSession({ invitation: theirs }, as(BEN.key)))).toBe("SESSION_ID_TAKEN");
  const unknown = message(ANN, "PROPOSE", invitation, newId(), "agent://no.example/x/nobody");
  expect(await refusal(api.createSession({ invitation: unknown }, as(ANN.key)))).toBe("AGENT_NOT_FOUND");
});

test("an agent that is hidden from the caller can neither be invited nor asked about", async () => {
  HIDDEN.push({ agent: "ben", from: ANN.key });
  const api = sessionsOf(host);
  const hidden = message(ANN, "PROPOSE", invitation, newId(), BEN.uri);
  expect(await refusal(api.createSession({ invitation: hidden }, as(ANN.key)))).toBe("AGENT_NOT_FOUND");
  expect(await refusal(api.listSessions({ agentId: BEN.uri }, as(ANN.key)))).toBe("AGENT_NOT_FOUND");
  const seen = message(EVE, "PROPOSE", invitation, newId(), BEN.uri);
  await api.createSession({ invitation: seen }, as(EVE.key));
});

test("of many that append at once each is told the head until all are in, and every watcher sees one order", async () => {
  let session = await invite();
  const api = sessionsOf(host);
  const say = async (who: typeof ANN, performative: "ACCEPT" | "INFORM" | "OBSERVE", body: JsonObject) => {
    for (let attempt = 0; ; attempt++) {
      const { session: now } = await api.getSession({ sessionId: session.sessionId }, as(who.key));
      if (now === undefined) throw new Error("no session");
      session = now;
      const lost = await refusal(
        api.appendMessage({ envelope: message(who, performative, body, now) }, as(who.key)),
      );
      if (lost === "nothing was refused") return;
      expect(["SESSION_HEAD_MOVED"]).toContain(lost);
      expect(attempt).toBeLessThan(100);
    }
  };
  await say(BEN, "ACCEPT", { referenceId: "inv" });
  for (const who of [ANN, BEN])
    await say(who, "INFORM", { informType: "identity", data: { agentId: who.uri, name: "n" } });
  const rounds = Array.from({ length: 5 });
  await Promise.all(
    [ANN, BEN].map(async (who) => {
      for (const _ of rounds) await say(who, "OBSERVE", {});
    }),
  );
  const { transcript } = await api.exportTranscript({ sessionId: session.sessionId }, as(ANN.key));
  expect(transcript?.messages.length).toBe(14);
  expect(
    (await api.verifyTranscript({ transcript: transcript as NonNullable<typeof transcript> }, as(EVE.key)))
      .valid,
  ).toBe(true);
});

test("who is brought in sees the session, and who is sent away does not any more", async () => {
  const session = await invite();
  const { sessionId } = session;
  const api = sessionsOf(host);
  const say = async (who: typeof ANN, performative: keyof typeof Performative, body: JsonObject) => {
    const { session: now } = await api.getSession({ sessionId }, as(who.key));
    const envelope = message(who, performative, body, now ?? sessionId);
    await api.appendMessage({ envelope }, as(who.key));
  };
  await say(BEN, "ACCEPT", { referenceId: "inv" });
  for (const who of [ANN, BEN]) {
    await say(who, "INFORM", { informType: "identity", data: { agentId: who.uri, name: "n" } });
  }
  await say(ANN, "OBSERVE", {});
  const delegation = { delegationId: "del", targetAgent: EVE.uri, scope: "s", authority: "advisory" };
  await say(BEN, "DELEGATE", delegation);
  const seen: number[] = [];
  const watching = (async () => {
    for await (const { entry } of api.watchSession({ sessionId }, as(EVE.key)))
      seen.push(entry?.ordinal ?? 0);
  })();
  await say(EVE, "ACCEPT", { referenceId: "del" });
  await say(BEN, "WITHDRAW", { referenceId: "del" });
  expect(await refusal(watching)).toBe("SESSION_NOT_FOUND");
  expect(seen).toEqual([1, 2, 3, 4, 5, 6, 7, 8]);
  expect(await refusal(api.getSession({ sessionId }, as(EVE.key)))).toBe("SESSION_NOT_FOUND");
});

test("every refusal of the protocol has a reason of its own kind", () => {
  expect(Object.values(REASONS)).not.toContain(ErrorReason.INTERNAL);
  expect(Object.values(REASONS)).not.toContain(undefined);
});
