import { createClient } from "@connectrpc/connect";
import { EnvelopeSchema } from "@depute/contracts/asp/v0/envelope_pb";
import { SessionService } from "@depute/contracts/depute/tasks/v1/session_service_pb";
import { createGrpcJsTransport } from "@depute/grpc-js";
import { refusal } from "@depute/service/testing";
import { decode } from "@depute/wire";
import { afterEach, expect, test } from "vitest";
import { pack, unpack } from "./mini-msgpack.ts";
import { type Platform, startPlatform } from "./platform.ts";
import { type Document, type Json, refusalOf, Stranger, uuid7 } from "./stranger.ts";

/**
 * This file tests the forms in which clients of ASP may write documents. The agents share no code with the
 * platform.
 */

let platform: Platform;
afterEach(() => platform.stop());

/** Starts a session of two agents; both have introduced themselves. */
async function introduced(...flags: string[]) {
  platform = await startPlatform(flags);
  const { url } = platform;
  const ann = new Stranger(url, "ann", "agent://ann.example/desk/ann");
  const ben = new Stranger(url, "ben", "agent://ben.example/desk/ben");
  for (const one of [ann, ben]) {
    one.proves = flags.includes("required");
    expect((await one.register()).status).toBe(200);
  }
  const invited = await ann.invite(ben.uri);
  expect(invited.status).toBe(201);
  const sessionId = String(invited.body.sessionId);
  expect((await ben.say(sessionId, "ACCEPT", { referenceId: "inv" })).status).toBe(201);
  for (const one of [ann, ben]) expect((await one.introduce(sessionId)).status).toBe(201);
  return { url, ann, ben, sessionId, path: `/v1/asp/sessions/${sessionId}/messages` };
}

test("a message that is too large is malformed, and so is its repetition", async () => {
  const { ann, sessionId, path } = await introduced("--max-body-bytes", "1048576");
  const long = await ann.say(sessionId, "OBSERVE", { data: "x".repeat(262_144) });
  expect(long.body.error).toMatchObject({
    code: "unspecified",
    retryable: false,
    reason: "INVALID_REQUEST",
    metadata: { code: "malformed" },
  });
  expect(long.status).toBe(400);
  const longer = await ann.post(path, { data: "x".repeat(1_100_000) }, { connection: "close" });
  expect(longer).toMatchObject({
    status: 413,
    body: { error: { code: "unspecified", retryable: false, metadata: { code: "malformed" } } },
  });
});

test("where credentials are required, a message's own proof and signature suffice", async () => {
  const { url, ann, ben, sessionId, path } = await introduced("--auth", "required");
  const session = await ann.session(sessionId);
  ann.proves = false;
  expect((await ann.get(`/v1/asp/sessions/${sessionId}`)).status).toBe(401);
  expect((await ann.get("/v1/asp/keys")).status).toBe(200);
  expect(
    refusalOf(await ann.post(path, ann.message(session, "OBSERVE", {}, { sender: elsewhere(ann, url) }))),
  ).toEqual([401, "UNAUTHENTICATED", undefined]);
  const forged = { ...ann.message(session, "OBSERVE", {}), performative: "QUERY" };
  expect(refusalOf(await ann.post(path, forged))[0]).toBe(401);
  const stranger = new Stranger(url, "eve", "agent://eve.example/desk/eve");
  expect(refusalOf(await stranger.post(path, stranger.message(session, "OBSERVE", {})))[0]).toBe(401);
  const first = ann.message(session, "OBSERVE", {});
  expect((await ann.post(path, first)).status).toBe(201);
  // A proof is valid for one message only, so Ben cannot replay Ann's proof.
  const again = { ...(first.sender as Document) };
  const replay = ben.message(await ben.session(sessionId), "OBSERVE", {}, { sender: again });
  expect(refusalOf(await ben.post(path, replay))[0]).toBe(401);
  const other = ann.message(await ben.session(sessionId), "OBSERVE", {}, { sender: again });
  expect(refusalOf(await ann.post(path, other))).toEqual([
    400,
    "SESSION_INTEGRITY_VIOLATION",
    "proof_replayed",
  ]);

  const transport = createGrpcJsTransport(new URL(url).host);
  const sessions = createClient(SessionService, transport);
  const rpc = `/${SessionService.typeName}/AppendMessage`;
  const sender = { ...again, dpopProof: ann.proof("POST", rpc) };
  const envelope = decode(
    EnvelopeSchema,
    ann.message(await ben.session(sessionId), "OBSERVE", {}, { sender }),
  );
  if (!envelope.ok) throw new Error(envelope.error.message);
  expect(await sessions.appendMessage({ envelope: envelope.message })).toMatchObject({ sequence: 6n });
  expect(await refusal(sessions.getSession({ sessionId }))).toMatchObject({ reason: "UNAUTHENTICATED" });
  transport.close();
});

/** Returns the sender member of a message, with a proof that is for another address. */
function elsewhere(one: Stranger, url: string): Document {
  const dpopProof = one.proof("POST", `${url}/v1/asp/elsewhere`);
  return { agentId: one.uri, orgId: `org_${one.id}`, trustScore: 10, dpopProof };
}

test("MessagePack and JSON can be used in the same session", async () => {
  const { url, ann, ben, sessionId, path } = await introduced();
  const type = "application/asp+msgpack";
  const send = async (body: Json, headers: Record<string, string> = {}) => {
    const response = await fetch(`${url}${path}`, {
      method: "POST",
      headers: { "content-type": type, ...headers },
      body: new Uint8Array(pack(body)),
    });
    const bytes = Buffer.from(await response.arrayBuffer());
    const answered = response.headers.get("content-type");
    return { status: response.status, type: answered, bytes };
  };
  const terms = { price: 50.25, seats: 100, open: null, big: 2 ** 40, less: -7, words: ["caf\u00e9"] };
  const message = ann.message(await ann.session(sessionId), "PROPOSE", {
    ...{ proposalId: "p", type: "terms", subject: "s", terms },
  });
  const sent = await send(message);
  expect([sent.status, sent.type]).toEqual([201, type]);
  expect(unpack(sent.bytes)).toMatchObject({ ordinal: 5, state: "CONVERSING" });
  const asJson = await send(ann.message(await ann.session(sessionId), "OBSERVE", {}), {
    accept: "application/json",
  });
  expect([asJson.status, asJson.type]).toEqual([201, "application/json"]);

  const got = await fetch(`${url}${path}`, { headers: { accept: type } });
  expect(got.headers.get("content-type")).toBe(type);
  const packed = unpack(Buffer.from(await got.arrayBuffer())) as { messages: Document[] };
  const { body } = await ben.get(path);
  expect(packed).toEqual(body);
  expect(packed.messages[4]).toMatchObject({ envelope: { content: { body: { terms } } } });

  const broken = await send("no document");
  expect([broken.status, broken.type]).toEqual([400, type]);
  expect((unpack(broken.bytes) as Document).error).toMatchObject({ reason: "INVALID_REQUEST" });
});

test("a session may be in MessagePack by its invitation", async () => {
  const { url, ann, ben } = await introduced();
  const type = "application/asp+msgpack";
  const body = { proposalId: "inv", type: "session-invitation", subject: "s", messageFormat: type };
  const content = { mimeType: type, body };
  const invitation = ann.message(uuid7(), "PROPOSE", {}, { recipient: ben.uri, content });
  const sent = await fetch(`${url}/v1/asp/sessions`, {
    method: "POST",
    headers: { "content-type": type },
    body: new Uint8Array(pack(invitation)),
  });
  expect(sent.status).toBe(201);
  const { sessionId } = unpack(Buffer.from(await sent.arrayBuffer())) as Document;
  const plain = await ben.say(String(sessionId), "ACCEPT", { referenceId: "inv" });
  expect(refusalOf(plain)).toEqual([400, "INVALID_REQUEST", "unsupported_format"]);
  const accept = { content: { mimeType: type, body: { referenceId: "inv" } } };
  expect((await ben.say(String(sessionId), "ACCEPT", {}, accept)).status).toBe(201);
});

test("a party files a dispute, once, against the other", async () => {
  const { url, ann, ben, sessionId } = await introduced();
  const path = `/v1/asp/sessions/${sessionId}/disputes`;
  const dispute: Document = {
    ...{ disputeId: "d1", sessionId, commitmentId: "cmt", filedBy: ben.uri, filedAgainst: ann.uri },
    ...{ reason: "spec-mismatch", severity: 3, evidence: { agreedTerms: { seats: 100 }, seen: 90 } },
  };
  expect(refusalOf(await ben.post(path, dispute))[2]).toBe("unknown_reference");
  await ann.say(sessionId, "PROPOSE", { proposalId: "p", type: "terms", subject: "s", terms: {} });
  await ann.say(sessionId, "COMMIT", { commitmentId: "cmt", terms: { seats: 100 } });
  expect(refusalOf(await ben.post(path, dispute))[2]).toBe("reference_closed");
  expect((await ben.say(sessionId, "ACCEPT", { referenceId: "cmt" })).status).toBe(201);

  expect(await ben.post(path, dispute)).toEqual({ status: 201, body: dispute });
  expect(await ben.post(path, dispute)).toEqual({ status: 201, body: dispute });
  for (const [changed, status, code] of [
    [{ severity: 4 }, 409, "id_taken"],
    [{ disputeId: "d2", filedAgainst: ben.uri }, 409, "unknown_party"],
    [{ disputeId: "d2", filedBy: "agent://eve.example/desk/eve" }, 403, "wrong_party"],
    [{ disputeId: "d2", severity: 6 }, 400, undefined],
    [{ disputeId: "d2", sessionId: uuid7() }, 400, undefined],
    [{ disputeId: "d2", evidence: { all: "x".repeat(70_000) } }, 400, "malformed"],
  ] as const) {
    const [got, , why] = refusalOf(await ben.post(path, { ...dispute, ...changed }));
    expect([got, why], JSON.stringify(changed).slice(0, 80)).toEqual([status, code]);
  }
  // Ann cannot open a dispute in Ben's name.
  const address = `${url}${path}`;
  expect(
    (await ann.post(path, { ...dispute, disputeId: "d2" }, { dpop: ann.proof("POST", address) })).status,
  ).toBe(403);
  for (const one of [ann, ben]) expect((await one.say(sessionId, "CLOSE", {})).status).toBe(201);
  expect(
    (await ann.post(path, { ...dispute, disputeId: "d3", filedBy: ann.uri, filedAgainst: ben.uri })).status,
  ).toBe(201);
  const { disputes } = (await ben.get(path)).body as { disputes: Document[] };
  expect(disputes.map(({ disputeId }) => disputeId)).toEqual(["d1", "d3"]);
});
