import { generateKeyPairSync, sign } from "node:crypto";
import { encodeBase64Url, newId } from "@depute/core";
import { createProof } from "@depute/dct";
import { nativeEngine } from "@depute/dct/native";
import { as } from "@depute/service/testing";
import { afterEach, beforeEach, expect, test } from "vitest";
import { ANN, BEN, EVE, INVITATION, refusalCode, Stage } from "../testing/cast.ts";

let stage: Stage;
beforeEach(async () => {
  stage = await new Stage().start();
});
afterEach(() => stage.stop());

const EC = generateKeyPairSync("ec", { namedCurve: "P-256" });
const { x = "", y = "" } = EC.publicKey.export({ format: "jwk" }) as { x?: string; y?: string };
const JWK = { kty: "EC", crv: "P-256", x, y };

/** Creates a proof that is signed by ES256. */
function es256(htu: string, jti = newId()): string {
  const part = (value: unknown) => encodeBase64Url(Buffer.from(JSON.stringify(value)));
  const claims = { htm: "POST", htu, iat: Math.floor(stage.clock.now() / 1000), jti };
  const signed = `${part({ typ: "dpop+jwt", alg: "ES256", jwk: JWK })}.${part(claims)}`;
  const key = { key: EC.privateKey, dsaEncoding: "ieee-p1363" } as const;
  return `${signed}.${encodeBase64Url(sign("sha256", Buffer.from(signed), key))}`;
}

const ACCEPT = { referenceId: "inv" };
const APPEND = "/depute.tasks.v1.SessionService/AppendMessage";
const INTEGRITY = "SESSION_INTEGRITY_VIOLATION";

test("a message needs a current proof by its sender's key for the call", async () => {
  const session = await stage.invite();
  const offer = (proof: string) =>
    stage.api.appendMessage(
      { envelope: stage.message(BEN, "ACCEPT", ACCEPT, session, { proof }) },
      as(BEN.key),
    );
  expect(await refusalCode(offer("e30.e30.e30"))).toEqual([INTEGRITY, "bad_proof"]);
  expect(await refusalCode(offer(stage.proof(ANN, "AppendMessage")))).toEqual([INTEGRITY, "bad_proof"]);
  expect(await refusalCode(offer(stage.proof(BEN, "CreateSession")))).toEqual([INTEGRITY, "bad_proof"]);
  const old = stage.proof(BEN, "AppendMessage");
  stage.clock.advance(61_000);
  const late = await stage.invite();
  const stale = stage.message(BEN, "ACCEPT", ACCEPT, late, { proof: old });
  expect(await refusalCode(stage.api.appendMessage({ envelope: stale }, as(BEN.key)))).toEqual([
    INTEGRITY,
    "stale_proof",
  ]);
  const bare = stage.message(ANN, "PROPOSE", INVITATION, newId(), {
    recipient: BEN.uri,
    proof: "e30.e30.e30",
  });
  expect(await refusalCode(stage.api.createSession({ invitation: bare }, as(ANN.key)))).toEqual([
    INTEGRITY,
    "bad_proof",
  ]);
});

test("a proof counts once, also after a restart, and a refused message does not use it up", async () => {
  const session = await stage.introduced();
  const proof = stage.proof(BEN, "AppendMessage");
  const early = stage.message(BEN, "ACCEPT", { referenceId: "nothing" }, session, { proof });
  expect((await refusalCode(stage.api.appendMessage({ envelope: early }, as(BEN.key))))[1]).toBe(
    "unknown_reference",
  );
  const envelope = await stage.say(BEN, "OBSERVE", {}, session, { proof });
  const again = () => stage.say(BEN, "OBSERVE", {}, session, { proof });
  expect(await refusalCode(again())).toEqual([INTEGRITY, "proof_replayed"]);
  await stage.host.restart();
  expect(await refusalCode(again())).toEqual([INTEGRITY, "proof_replayed"]);
  // A participant may repeat a message. The repetition gets the first response, even if the message's proof has become
  // too old.
  stage.clock.advance(120_000);
  expect(await stage.api.appendMessage({ envelope }, as(BEN.key))).toMatchObject({ sequence: 5n });
});

test("a card's proof key replaces its signature key for proofs, also with ES256", async () => {
  stage.cards.set(BEN.uri, { dpopPublicKey: JWK });
  const session = await stage.invite();
  expect(await refusalCode(stage.say(BEN, "ACCEPT", ACCEPT, session))).toEqual([INTEGRITY, "bad_proof"]);
  await stage.say(BEN, "ACCEPT", ACCEPT, session, { proof: es256(APPEND) });
  const { transcript } = await stage.api.exportTranscript({ sessionId: session.sessionId }, as(ANN.key));
  expect(transcript?.participants.map(({ dpopThumbprint }) => typeof dpopThumbprint)).toEqual([
    "undefined",
    "string",
  ]);
  expect(await stage.api.verifyTranscript({ transcript: transcript ?? {} }, as(EVE.key))).toMatchObject({
    valid: true,
  });
});

test("a proof by ES256 in the header identifies the caller, once, and counts for the message as well", async () => {
  stage.cards.set(BEN.uri, { dpopPublicKey: JWK });
  const session = await stage.invite();
  const { sessionId } = session;
  const beside = (path: string, jti?: string) => ({
    headers: { dpop: es256(`${stage.host.url}/depute.tasks.v1.SessionService/${path}`, jti) },
  });
  expect((await stage.api.getSession({ sessionId }, beside("GetSession"))).session?.sessionId).toBe(
    sessionId,
  );
  expect((await stage.api.listSessions({ agentId: BEN.uri }, beside("ListSessions"))).sessions).toHaveLength(
    1,
  );
  for (const denied of [
    () => stage.api.getSession({ sessionId }, beside("WatchSession")),
    () => stage.api.getSession({ sessionId: newId() }, beside("GetSession")),
    () => stage.api.listSessions({ agentId: ANN.uri }, beside("ListSessions")),
  ]) {
    expect((await refusalCode(denied()))[0]).toBe("UNAUTHENTICATED");
  }
  const envelope = stage.message(BEN, "ACCEPT", ACCEPT, session, { proof: "e30.e30.e30" });
  expect(await stage.api.appendMessage({ envelope }, beside("AppendMessage", "only-once"))).toMatchObject({
    sequence: 2n,
  });
  const next = stage.api.appendMessage({ envelope }, beside("AppendMessage", "only-once"));
  expect((await refusalCode(next))[0]).toBe("UNAUTHENTICATED");
});

test("proofs are deleted after the time at which they are refused", async () => {
  const session = await stage.introduced();
  const jti = "the-same-one";
  await stage.say(BEN, "OBSERVE", {}, session, { proof: stage.proof(BEN, "AppendMessage", jti) });
  stage.clock.advance(180_000);
  await stage.host.restart();
  // After the purge, the proof's id can be used again. The reuse is safe, because the old proof would be
  // refused for its age.
  const claims = { htm: "POST", htu: APPEND, jti, now: stage.clock.now() };
  const keypair = { principal: { id: BEN.key }, privateKey: BEN.seed };
  for (let look = 0; ; look++) {
    const proof = createProof(nativeEngine, keypair, claims);
    const code = await refusalCode(stage.say(BEN, "OBSERVE", {}, session, { proof }));
    if (code[1] === undefined) break;
    expect([code[1], look < 100]).toEqual(["proof_replayed", true]);
  }
});
