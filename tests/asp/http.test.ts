import type { JsonObject } from "@bufbuild/protobuf";
import { verifyTranscript } from "@depute/asp";
import { EnvelopeSchema } from "@depute/contracts/asp/v0/envelope_pb";
import { SessionState } from "@depute/contracts/asp/v0/session_pb";
import { TranscriptSchema } from "@depute/contracts/asp/v0/transcript_pb";
import { newId } from "@depute/core";
import { portableEngine } from "@depute/dct";
import { decodeValid, encode } from "@depute/wire";
import { afterAll, beforeAll, expect, test } from "vitest";
import { ALPHA, BETA, documentOf, GAMMA, HttpRefusal, overHttp, proofAt, type Wire, write } from "./cast.ts";
import { type Platform, register, startPlatform } from "./platform.ts";
import { invite, LINES, play } from "./scenario.ts";

const CAST = [ALPHA, BETA, GAMMA];
let platform: Platform;
let wire: Wire;
beforeAll(async () => {
  platform = await startPlatform();
  for (const one of CAST) await register(platform, one);
  wire = overHttp(platform.url);
});
afterAll(() => platform.stop());

const wires = () => new Map(CAST.map((one) => [one, overHttp(platform.url)]));
const keyOf = (uri: string) => CAST.find((one) => one.uri === uri)?.key;
const asp = (path: string, init: RequestInit = {}) => fetch(`${platform.url}/v1/asp${path}`, init);
const get = async (path: string) => documentOf(await asp(path));

async function refusal(call: Promise<unknown>) {
  const thrown = await call.then(
    () => undefined,
    (error: unknown) => error,
  );
  if (!(thrown instanceof HttpRefusal)) throw new Error(`not refused: ${String(thrown)}`);
  const { code, reason, retryable } = thrown.error;
  return [thrown.status, code, reason, retryable];
}

/** Reads all events of a stream until it ends. */
async function events(response: Response): Promise<{ event: string; data: JsonObject }[]> {
  const text = await response.text();
  return text
    .split("\n\n")
    .filter((part) => part.includes("data: "))
    .map((part) => ({
      event: /^event: (.*)$/m.exec(part)?.[1] ?? "",
      data: JSON.parse(/^data: (.*)$/m.exec(part)?.[1] ?? "") as JsonObject,
    }));
}

test("the scenario leads through the text's states, and its transcript is verified offline", async () => {
  const { sessionId, states } = await play(wires());
  expect(states).toEqual(LINES.map(([, , , state]) => state));
  const decoded = decodeValid(TranscriptSchema, await get(`/sessions/${sessionId}/transcript`));
  if (!decoded.ok) throw new Error(JSON.stringify(decoded.errors));
  const verdict = verifyTranscript(decoded.message, { engine: portableEngine, keyOf });
  expect(verdict.ok && verdict.states.slice(1)).toEqual(states);
  // A message that was sent over HTTP has the same hashed bytes over gRPC.
  const { transcript } = await platform.sessions.exportTranscript({ sessionId });
  expect(transcript?.messages).toEqual(decoded.message.messages);
});

test("live messages are events, and a client resumes at its position", async () => {
  const { sessionId } = await invite(wire);
  const live = (headers: Record<string, string> = {}) =>
    asp(`/sessions/${sessionId}/messages`, { headers: { accept: "text/event-stream", ...headers } });
  const [whole, rest] = [live(), live({ "last-event-id": "1" })];
  await Promise.all([whole, rest]);
  await wire.append(write(BETA, "REJECT", { referenceId: "inv" }, await wire.get(sessionId)));
  const toldEvents = (await events(await whole)).map(({ event, data }) => [
    event,
    data.ordinal ?? data.state,
  ]);
  expect(toldEvents).toEqual([
    ["message", 1],
    ["session_state", "INVITED"],
    ["message", 2],
    ["session_state", "FAILED"],
  ]);
  expect((await events(await rest)).map(({ event }) => event)).toEqual(["message", "session_state"]);
});

test("messages are read in pages, from a position, and one by one", async () => {
  const { sessionId } = await play(wires(), 5);
  const page = await get(`/sessions/${sessionId}/messages?limit=4`);
  expect([(page.messages as JsonObject[]).length, page.nextCursor]).toEqual([4, "4"]);
  const rest = await get(`/sessions/${sessionId}/messages?cursor=4`);
  expect([(rest.messages as JsonObject[]).map(({ ordinal }) => ordinal), rest.nextCursor]).toEqual([
    [5, 6],
    undefined,
  ]);
  const since = await get(`/sessions/${sessionId}/messages?since_sequence=5`);
  const [last] = since.messages as JsonObject[];
  const { messageId } = (last?.envelope ?? {}) as JsonObject;
  expect(await get(`/sessions/${sessionId}/messages/${String(messageId)}`)).toEqual(last);
  expect(await refusal(get(`/sessions/${sessionId}/messages/${newId()}`))).toEqual([
    404,
    "unspecified",
    "SESSION_NOT_FOUND",
    false,
  ]);
  expect((await refusal(get(`/sessions/${sessionId}/messages?limit=many`)))[0]).toBe(400);
  const list = await get(`/sessions?agent_id=${encodeURIComponent(ALPHA.uri)}&limit=1`);
  expect((list.sessions as JsonObject[]).map((one) => one.sessionId)).toEqual([sessionId]);
});

test("agents are found by capability and trust, with the platform's trust in their cards", async () => {
  const foundAgents = await get("/discover?capability=provision.software&min_trust=0");
  expect((foundAgents.agents as JsonObject[]).map(({ agentId }) => agentId).sort()).toEqual(
    CAST.map(({ uri }) => uri).sort(),
  );
  expect((await get("/discover?capability=provision.software&min_trust=4")).agents).toEqual([]);
  expect((await get("/discover?capability=nothing")).agents).toEqual([]);
  const card = await get(`/agents/${encodeURIComponent(BETA.uri)}/card`);
  const { agentId, trustLevel } = card;
  expect([agentId, typeof trustLevel]).toEqual([BETA.uri, "number"]);
  expect(
    (await refusal(get(`/agents/${encodeURIComponent("agent://other.io/x/beta-vendor")}/card`)))[0],
  ).toBe(404);
});

test("delegated work is watched as events, and its report is evidence", async () => {
  const { sessionId } = await play(wires(), 9);
  const path = `/sessions/${sessionId}/delegations/del_001`;
  const work = await asp(`${path}/events`, { headers: { accept: "text/event-stream" } });
  expect((await events(work)).map(({ event }) => event)).toEqual([
    "created",
    "accepted",
    "started",
    "completed",
  ]);
  expect((await refusal(get(`${path}/events`)))[0]).toBe(406);
  const evidence = await get(`${path}/evidence`);
  expect(evidence).toMatchObject({ verifier: GAMMA.uri, delegator: BETA.uri, delegationId: "del_001" });
  const list = await get(`/evidence?agent_id=${encodeURIComponent(ALPHA.uri)}&limit=1`);
  expect(list.evidence).toEqual([evidence]);
  expect((await refusal(get(`/sessions/${sessionId}/delegations/none/evidence`)))[0]).toBe(404);
});

test("refusals have the protocol's code, the platform's reason and HTTP's status", async () => {
  const { sessionId } = await play(wires(), 8);
  const session = await wire.get(sessionId);
  const accept = { referenceId: "prop_lic_001" };
  const forged = write({ ...BETA, seed: ALPHA.seed }, "ACCEPT", accept, session);
  expect(await refusal(wire.append(forged))).toEqual([
    400,
    "unauthorized",
    "SESSION_INTEGRITY_VIOLATION",
    false,
  ]);
  expect(await refusal(wire.append(write(GAMMA, "ACCEPT", accept, session)))).toEqual([
    403,
    "policy_violation",
    "SESSION_NOT_ALLOWED",
    false,
  ]);
  const stale = { ...session, lastHash: `sha256:${"1".repeat(64)}` };
  expect(await refusal(wire.append(write(BETA, "ACCEPT", accept, stale)))).toEqual([
    409,
    "duplicate",
    "SESSION_HEAD_MOVED",
    true,
  ]);
  const post = (body: string, type = "application/json") =>
    asp(`/sessions/${sessionId}/messages`, { method: "POST", headers: { "content-type": type }, body });
  const genuine = encode(EnvelopeSchema, write(BETA, "OBSERVE", {}, session)) as JsonObject;
  for (const [body, type, status] of [
    ["{", "application/json", 400],
    [JSON.stringify(genuine), "text/plain", 415],
    [JSON.stringify({ ...genuine, version: "asp/1.0" }), "application/json", 400],
    [JSON.stringify({ ...genuine, sessionId: newId() }), "application/json", 400],
  ] as const) {
    expect((await post(body, type)).status, body).toBe(status);
  }
  const takenMessage = await post(JSON.stringify(genuine));
  expect([takenMessage.status, takenMessage.headers.get("asp-session-id")]).toEqual([201, sessionId]);
});

test("a proof for the address of the call is in the message or in the header", async () => {
  const { sessionId } = await play(wires(), 3);
  const here = `${platform.url}/v1/asp/sessions/${sessionId}/messages`;
  const offer = async (inMessage: string, beside?: string) => {
    const envelope = write(BETA, "OBSERVE", {}, await wire.get(sessionId), undefined, inMessage);
    const headers = {
      "content-type": "application/asp+json",
      ...(beside === undefined ? {} : { dpop: beside }),
    };
    const body = JSON.stringify(encode(EnvelopeSchema, envelope));
    const response = await asp(`/sessions/${sessionId}/messages`, { method: "POST", headers, body });
    const { error } = (await response.json()) as { error?: JsonObject };
    return error === undefined ? response.status : ((error.metadata as JsonObject).code ?? error.reason);
  };
  const shape = "e30.e30.e30";
  expect(await offer(proofAt(BETA, here))).toBe(201);
  expect(await offer(proofAt(BETA, `${here}/other`))).toBe("bad_proof");
  expect(await offer(proofAt(BETA, here, "GET"))).toBe("bad_proof");
  expect(await offer(proofAt(ALPHA, here))).toBe("bad_proof");
  expect(await offer(shape)).toBe("bad_proof");
  expect(await offer(shape, proofAt(BETA, here))).toBe(201);
  expect(await offer(shape, proofAt(ALPHA, here))).toBe("CALLER_NOT_ALLOWED");
  expect(await offer(shape, proofAt(GAMMA, here))).toBe("SESSION_NOT_FOUND");
  expect(await offer(shape, proofAt(BETA, `${here}/other`))).toBe("UNAUTHENTICATED");
});

test("answers are application/asp+json, or plain JSON on request; DELETE takes a CLOSE", async () => {
  const { sessionId } = await play(wires(), 3);
  const type = async (accept: string) =>
    (await asp(`/sessions/${sessionId}`, { headers: { accept } })).headers.get("content-type");
  expect([await type("*/*"), await type("application/json")]).toEqual([
    "application/asp+json",
    "application/json",
  ]);
  const close = async (party: typeof ALPHA, performative: "CLOSE" | "OBSERVE") =>
    asp(`/sessions/${sessionId}`, {
      method: "DELETE",
      headers: { "content-type": "application/asp+json" },
      body: JSON.stringify(encode(EnvelopeSchema, write(party, performative, {}, await wire.get(sessionId)))),
    });
  expect((await close(ALPHA, "OBSERVE")).status).toBe(400);
  expect((await close(ALPHA, "CLOSE")).status).toBe(200);
  expect((await close(BETA, "CLOSE")).status).toBe(200);
  expect((await wire.get(sessionId)).state).toBe(SessionState.CLOSED);
});
