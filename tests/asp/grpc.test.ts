import { create, toBinary } from "@bufbuild/protobuf";
import { verifyTranscript } from "@depute/asp";
import { EnvelopeSchema } from "@depute/contracts/asp/v0/envelope_pb";
import { SessionState } from "@depute/contracts/asp/v0/session_pb";
import { TranscriptSchema } from "@depute/contracts/asp/v0/transcript_pb";
import { TranscriptSealStatus } from "@depute/contracts/depute/tasks/v1/session_service_pb";
import { newId, reasonName } from "@depute/core";
import { portableEngine } from "@depute/dct";
import { fromConnectError } from "@depute/service";
import { afterAll, beforeAll, expect, test } from "vitest";
import { ALPHA, agent, BETA, GAMMA, overGrpc, write } from "./cast.ts";
import { type Platform, register, startPlatform } from "./platform.ts";
import { invite, LINES, play } from "./scenario.ts";

const CAST = [ALPHA, BETA, GAMMA];
let platform: Platform;
beforeAll(async () => {
  platform = await startPlatform();
  // The scores that the agents have in the specification's example.
  for (const [one, score] of [
    [ALPHA, 68],
    [BETA, 85],
    [GAMMA, 92],
  ] as const)
    await register(platform, one, score);
});
afterAll(() => platform.stop());

const wires = () => new Map(CAST.map((one) => [one, overGrpc(platform.sessions)]));
const keyOf = (uri: string) => CAST.find((one) => one.uri === uri)?.key;

async function refusal(call: Promise<unknown>) {
  const thrown = await call.then(
    () => undefined,
    (error: unknown) => fromConnectError(error),
  );
  if (thrown === undefined) throw new Error("nothing was refused");
  return [reasonName(thrown.reason), thrown.metadata.code];
}

test("trust moves by the session's outcomes, for each pair, in the text's order", async () => {
  const ids = CAST.map(({ uri }) => uri.slice(uri.lastIndexOf("/") + 1));
  const read = async (agentId: string) => (await platform.trust.getTrust({ agentId })).overall;
  const before = await Promise.all(ids.map(read));
  await play(wires());
  const eventsOf = async (agentId: string, least: bigint) => {
    for (let look = 0; look < 200; look++) {
      const trust = await read(agentId);
      if ((trust?.evidenceCount ?? 0n) >= least) return trust;
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
    throw new Error(`nothing was recorded of ${agentId}`);
  };
  const count = (index: number) => before[index]?.evidenceCount ?? 0n;
  // The evidence recorded for each agent. Alpha: completed, fulfilled, paid, rated. Beta: completed twice, fulfilled,
  // rated. Gamma: completed.
  const after = await Promise.all(
    [4n, 4n, 1n].map((more, index) => eventsOf(ids[index] ?? "", count(index) + more)),
  );
  const [alpha = 0, beta = 0, gamma = 0] = after.map(
    (trust, index) => (trust?.score ?? 0) - (before[index]?.score ?? 0),
  );
  expect(alpha).toBeGreaterThan(beta);
  expect(beta).toBeGreaterThan(gamma);
  expect(gamma).toBeGreaterThan(0);
});

test("the scenario leads through the text's states, and a fourth verifies the transcript offline", async () => {
  const { sessionId, states } = await play(wires());
  expect(states).toEqual(LINES.map(([, , , state]) => state));
  const transcripts = await Promise.all(
    CAST.map(async () => (await platform.sessions.exportTranscript({ sessionId })).transcript),
  );
  const [first] = transcripts;
  if (first === undefined) throw new Error("no transcript");
  // Exports differ in their time and seal, so the comparison leaves these out.
  const bytes = (one: typeof first) => {
    const { seal: _seal, ...unsealed } = one;
    return toBinary(TranscriptSchema, { ...unsealed, exportedAt: first.exportedAt });
  };
  for (const one of transcripts) expect(one && bytes(one)).toEqual(bytes(first));
  const verdict = verifyTranscript(first, { engine: portableEngine, keyOf });
  expect(verdict.ok && verdict.states.slice(1)).toEqual(states);
  expect(await platform.sessions.verifyTranscript({ transcript: first })).toMatchObject({
    valid: true,
    state: SessionState.CLOSED,
    seal: TranscriptSealStatus.SEALED,
  });
  const { session } = await platform.sessions.getSession({ sessionId });
  const commitment = session?.objects?.values.find(({ objectId }) => objectId === "cmt_lic_001");
  expect(commitment?.escrowState).toBe("released");
  const [, second] = first.messages;
  if (second?.envelope?.sender === undefined) throw new Error("no second message");
  second.envelope.sender.trustScore = 99;
  expect(await platform.sessions.verifyTranscript({ transcript: first })).toMatchObject({
    valid: false,
    code: "wrong_hash",
    ordinal: 2,
  });
});

test("all watchers see the same messages, and a watch continues from its position", async () => {
  const [wire] = [overGrpc(platform.sessions)];
  const { sessionId } = await invite(wire);
  const watch = async (afterOrdinal: number) => {
    const seenStates: [number | undefined, SessionState][] = [];
    for await (const { entry, state } of platform.sessions.watchSession({
      sessionId,
      afterSequence: BigInt(afterOrdinal),
    })) {
      seenStates.push([entry?.ordinal, state]);
    }
    return seenStates;
  };
  const watchers = [watch(0), watch(0), watch(1)];
  await wire.append(
    write(BETA, "REJECT", { referenceId: "inv", code: "timeout" }, await wire.get(sessionId)),
  );
  const { INVITED, FAILED } = SessionState;
  expect(await Promise.all(watchers)).toEqual([
    [
      [1, INVITED],
      [2, FAILED],
    ],
    [
      [1, INVITED],
      [2, FAILED],
    ],
    [[2, FAILED]],
  ]);
  expect(await watch(2)).toEqual([]);
});

test("one of two messages for one position is refused with the head; a replay gets the same answer", async () => {
  const wire = overGrpc(platform.sessions);
  const { sessionId } = await play(wires(), 4);
  const session = await wire.get(sessionId);
  const [mine, yours] = [
    write(ALPHA, "OBSERVE", {}, session),
    write(BETA, "ACCEPT", { referenceId: "prop_lic_001" }, session),
  ];
  const outcomes = await Promise.allSettled([wire.append(mine), wire.append(yours)]);
  expect(outcomes.map(({ status }) => status).sort()).toEqual(["fulfilled", "rejected"]);
  const rejected = outcomes.find((outcome) => outcome.status === "rejected");
  const { lastHash } = await wire.get(sessionId);
  const error = fromConnectError(rejected?.reason);
  expect([reasonName(error.reason), error.metadata.head]).toEqual(["SESSION_HEAD_MOVED", lastHash]);
  const won = outcomes[0]?.status === "fulfilled" ? mine : yours;
  expect((await wire.append(won)).ordinal).toBe((await wire.get(sessionId)).messageCount);
  const other = create(EnvelopeSchema, {
    ...write(BETA, "OBSERVE", { subject: "other" }, await wire.get(sessionId)),
    messageId: won.messageId,
  });
  expect(await refusal(wire.append(other))).toEqual(["SESSION_MESSAGE_ID_TAKEN", "duplicate_message"]);
});

test("a message that violates the rules is refused with its code, and the session continues", async () => {
  const wire = overGrpc(platform.sessions);
  const { sessionId } = await play(wires(), 8);
  const session = await wire.get(sessionId);
  const accept = { referenceId: "prop_lic_001" };
  const genuine = write(BETA, "ACCEPT", accept, session);
  const tampered = create(EnvelopeSchema, { ...genuine, timestamp: new Date(0).toISOString() });
  expect(await refusal(wire.append(tampered))).toEqual(["SESSION_STATE_CONFLICT", "clock_skew"]);
  const forged = write({ ...BETA, seed: ALPHA.seed }, "ACCEPT", accept, session);
  expect(await refusal(wire.append(forged))).toEqual(["SESSION_INTEGRITY_VIOLATION", "bad_signature"]);
  const advice = write(GAMMA, "ACCEPT", accept, session);
  expect(await refusal(wire.append(advice))).toEqual(["SESSION_NOT_ALLOWED", "authority_exceeded"]);
  const early = write(ALPHA, "ACCEPT", { referenceId: "cmt_lic_001" }, session);
  expect(await refusal(wire.append(early))).toEqual(["SESSION_STATE_CONFLICT", "unknown_reference"]);
  const stranger = agent("agent://nobody.example/x/zeta", "org_zeta");
  expect(await refusal(wire.append(write(stranger, "OBSERVE", {}, session)))).toEqual([
    "SESSION_NOT_ALLOWED",
    "not_a_participant",
  ]);
  expect(await refusal(wire.get(newId()))).toEqual(["SESSION_NOT_FOUND", undefined]);
  await wire.append(genuine);
});

test("an agent's sessions are listed, newest first", async () => {
  const { sessionId } = await invite(overGrpc(platform.sessions));
  const first = await platform.sessions.listSessions({ agentId: BETA.uri, pageSize: 1 });
  expect(first.sessions.map((one) => one.sessionId)).toEqual([sessionId]);
  const { nextPageToken: pageToken } = first;
  const second = await platform.sessions.listSessions({ agentId: BETA.uri, pageSize: 1, pageToken });
  expect(second.sessions[0]?.sessionId).not.toBe(sessionId);
  const messages = await platform.sessions.listMessages({ sessionId });
  expect([messages.entries.length, messages.nextPageToken]).toEqual([1, ""]);
});
