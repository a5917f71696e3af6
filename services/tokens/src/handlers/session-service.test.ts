import { DenialType } from "@depute/contracts/delegateos/v0/delegation_pb";
import type { SerializedDCT } from "@depute/contracts/delegateos/v0/token_pb";
import type { OpenSessionResponse } from "@depute/contracts/depute/tokens/v1/session_service_pb";
import { type CallerSession, type Keypair, requestSession, type SessionRequest } from "@depute/dct";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { signKeyRevocation } from "../rules/key-revocation.ts";
import {
  alice,
  as,
  attenuate,
  bob,
  CALL,
  engine,
  given,
  id,
  mint,
  readFile,
  revocation,
} from "../testing/holders.ts";
import { type Platform, startPlatform } from "../testing/platform.ts";
import { refusal } from "../testing/refusal.ts";

const HOST = "https://depute.example";
const OPEN = { htm: "POST", htu: `${HOST}/depute.tokens.v1.SessionService/OpenSession` };
const CLOSE = { htm: "POST", htu: `${HOST}/depute.tokens.v1.SessionService/CloseSession` };

let platform: Platform;
beforeEach(async () => {
  platform = await startPlatform();
});
afterEach(() => platform.stop());

const ask = (who: Keypair, token?: SerializedDCT, more: object = {}) =>
  requestSession(engine, who, {
    ...{ ...OPEN, audience: HOST, now: platform.clock.now(), ...more },
    ...(token !== undefined && { token: token.token }),
  });
const send = ({ proof }: SessionRequest, token?: SerializedDCT, more: object = {}) =>
  platform.sessions.openSession({ proof, audience: HOST, ...(token && { token }), ...more });

async function accepted(
  request: SessionRequest,
  answer: Promise<OpenSessionResponse>,
): Promise<CallerSession> {
  const { result } = await answer;
  if (result.case !== "grant") throw new Error(`denied: ${result.value?.type}`);
  const { expiresAtMs, ...grant } = result.value;
  const { principal } = await platform.tokens.getIssuer({});
  return request.accept({ ...grant, expiresAt: Number(expiresAtMs) }, principal);
}

async function open(who: Keypair, token?: SerializedDCT, more: object = {}) {
  const request = ask(who, token);
  return accepted(request, send(request, token, more));
}

const denialOf = async (answer: Promise<OpenSessionResponse>) => {
  const { result } = await answer;
  return result.case === "denial" ? [result.value.type, result.value.detail] : result.case;
};

/** VerifyToken with one proof. */
async function call(token: SerializedDCT, jwt: string, more: object = {}) {
  const { result } = await platform.tokens.verifyToken({
    ...{ token, requested: readFile(), proof: { jwt, method: CALL.htm, target: CALL.htu }, ...more },
  });
  return result.case === "denial" ? result.value.type : "allowed";
}

const now = () => ({ ...CALL, now: platform.clock.now() });

describe("a session", () => {
  it("stands for its holder's proof, call after call, each once (B5)", async () => {
    const token = given((await mint(platform)).token);
    const session = await open(alice, token);
    const proofs = [session.prove(now()), session.prove(now()), session.prove(now())];
    // In any order, as calls overtake each other.
    for (const proof of proofs.toReversed()) expect(await call(token, proof)).toBe("allowed");
    for (const proof of proofs) expect(await call(token, proof)).toBe(DenialType.REPLAYED_PROOF);
    const together = session.prove(now());
    const twice = await Promise.all([call(token, together), call(token, together)]);
    expect(twice.sort()).toEqual([DenialType.REPLAYED_PROOF, "allowed"]);
  });

  it("is used up by a denied call too", async () => {
    const token = given((await mint(platform)).token);
    const session = await open(alice, token);
    const proof = session.prove(now());
    const requested = { namespace: "docs", action: "read", resource: "/elsewhere" };
    expect(await call(token, proof, { requested })).toBe(DenialType.CAPABILITY_NOT_GRANTED);
    expect(await call(token, proof)).toBe(DenialType.REPLAYED_PROOF);
  });

  it("without a token says who calls", async () => {
    const session = await open(alice);
    const htu = `${HOST}/depute.tokens.v1.TokenService/GetIssuer`;
    const headers = () => ({
      headers: { dpop: session.prove({ htm: "POST", htu, now: platform.clock.now() }) },
    });
    const once = headers();
    await platform.tokens.getIssuer({}, once);
    await platform.tokens.getIssuer({}, headers());
    expect((await refusal(platform.tokens.getIssuer({}, once))).metadata.denial).toBe("replayed_proof");
    const { result } = await platform.tokens.verifyProof({
      proof: { jwt: session.prove(now()), method: CALL.htm, target: CALL.htu },
    });
    expect(result).toEqual({ case: "principal", value: id(alice) });
  });

  it("may be opened with the proof in the header, where a call needs credentials", async () => {
    const strict = await startPlatform([], ["--auth", "required", "--internal-secret", "s".repeat(32)]);
    try {
      const request = requestSession(engine, alice, { ...OPEN, audience: HOST, now: strict.clock.now() });
      const headers = { dpop: request.proof };
      const { result } = await strict.sessions.openSession({ audience: HOST }, { headers });
      expect(result.case).toBe("grant");
      expect((await refusal(strict.sessions.openSession({ audience: HOST }))).reason).toBe("UNAUTHENTICATED");
    } finally {
      await strict.stop();
    }
  });

  it("counts for its token, its audience and its call alone", async () => {
    const { token: first } = await mint(platform);
    const token = given(first);
    const narrowed = given((await attenuate(platform, token, alice, alice)).token);
    const session = await open(alice, token);
    expect(await call(narrowed, session.prove(now()))).toBe(DenialType.INVALID_PROOF);
    const other = session.prove({ ...now(), htu: `${HOST}/another` });
    expect(await call(token, other)).toBe(DenialType.INVALID_PROOF);
    const elsewhere = "https://elsewhere.example/call";
    const away = session.prove({ ...now(), htu: elsewhere });
    expect(await call(token, away, { proof: { jwt: away, method: "POST", target: elsewhere } })).toBe(
      DenialType.INVALID_PROOF,
    );
    expect(await call(token, session.prove(now()))).toBe("allowed");
  });

  it("grants nothing by itself: the token is judged at each call (R10)", async () => {
    const { token, revocationId } = await mint(platform, { lifetimeSeconds: 600 });
    const session = await open(alice, token, { lifetimeSeconds: 3600 });
    expect(session.terms.expiresAt).toBe(platform.clock.now() + 600_000);
    expect(await call(given(token), session.prove(now()))).toBe("allowed");
    await platform.revocations.revokeToken({ entry: revocation(platform, revocationId, alice) });
    expect(await call(given(token), session.prove(now()))).toBe(DenialType.REVOKED);
  });

  it("ends with its time, with its process, with its key, and when it is closed", async () => {
    const token = given((await mint(platform)).token);
    const late = await open(alice, token, { lifetimeSeconds: 1 });
    const proof = late.prove(now());
    platform.clock.advance(1001);
    expect(await call(token, proof)).toBe(DenialType.INVALID_PROOF);

    const closed = await open(alice, token);
    const at = { ...CLOSE, now: platform.clock.now() };
    await platform.sessions.closeSession({ proof: closed.prove(at), token });
    expect(await call(token, closed.prove(now()))).toBe(DenialType.INVALID_PROOF);
    await platform.sessions.closeSession({ proof: closed.prove(at), token });

    const before = await open(alice, token);
    await platform.restart();
    expect(await call(token, before.prove(now()))).toBe(DenialType.INVALID_PROOF);

    const compromised = await open(alice, token);
    const statement = signKeyRevocation(
      engine,
      { key: id(alice), keepBefore: 0, now: platform.clock.now() },
      alice,
    );
    await platform.revocations.revokeKey({ revocation: statement });
    expect(await call(token, compromised.prove(now()))).toBe(DenialType.INVALID_PROOF);
  });

  it("is closed by nobody but its holder", async () => {
    const token = given((await mint(platform)).token);
    const session = await open(alice, token);
    const proof = session.prove({ ...CLOSE, now: platform.clock.now() });
    const forged = `${proof.slice(0, -43)}${"A".repeat(43)}`;
    expect((await refusal(platform.sessions.closeSession({ proof: forged, token }))).reason).toBe(
      "TOKEN_DENIED",
    );
    expect(await call(token, session.prove(now()))).toBe("allowed");
  });
});

describe("OpenSession", () => {
  it("opens one session for a proof, for who holds the token, by a proof made for that", async () => {
    const { token: first, revocationId } = await mint(platform);
    const token = given(first);
    const request = ask(alice, token);
    await accepted(request, send(request, token));
    expect(await denialOf(send(request, token))).toEqual([DenialType.REPLAYED_PROOF, undefined]);

    expect(await denialOf(send(ask(bob, token), token))).toEqual([DenialType.INVALID_PROOF, "jwk"]);
    expect(await denialOf(send(ask(alice, token)))).toEqual([DenialType.INVALID_PROOF, "ath"]);
    const elsewhere = { audience: "https://elsewhere.example" };
    expect((await denialOf(send(ask(alice, token), token, elsewhere)))?.[0]).toBe(DenialType.INVALID_PROOF);
    const otherCall = ask(alice, token, { htu: CALL.htu });
    expect(await denialOf(send(otherCall, token))).toEqual([DenialType.INVALID_PROOF, "htu"]);
    const plain = as(platform, alice, "SessionService/OpenSession").headers.dpop;
    expect((await denialOf(platform.sessions.openSession({ proof: plain, audience: HOST })))?.[0]).toBe(
      DenialType.INVALID_PROOF,
    );
    expect(await denialOf(platform.sessions.openSession({ audience: HOST }))).toEqual([
      DenialType.PROOF_REQUIRED,
      undefined,
    ]);
    await platform.revocations.revokeToken({ entry: revocation(platform, revocationId, alice) });
    expect((await denialOf(send(ask(alice, token), token)))?.[0]).toBe(DenialType.REVOKED);
  });

  it("keeps a share of the room for each principal", async () => {
    for (let n = 0; n < 64; n++) await open(bob);
    expect(await denialOf(send(ask(bob)))).toEqual([DenialType.INTERNAL_CONTEXT, "no room for the session"]);
    await open(alice);
    platform.clock.advance(901_000);
    await open(bob);
  });

  it("is in the audit, as everything else that is decided", async () => {
    await open(alice);
    await denialOf(platform.sessions.openSession({ audience: HOST }));
    const decisions = (await platform.audit()).filter(({ kind }) => kind === "open_session");
    expect(decisions).toMatchObject([
      { principal: id(alice), decision: "allowed", reason: "" },
      { principal: "", decision: "denied", reason: "proof_required" },
    ]);
  });
});
