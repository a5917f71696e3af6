import { durationFromMs } from "@bufbuild/protobuf/wkt";
import { DenialType } from "@depute/contracts/delegateos/v0/delegation_pb";
import type { SerializedDCT } from "@depute/contracts/delegateos/v0/token_pb";
import type { OpenHolderSessionResponse } from "@depute/contracts/depute/tokens/v1/holder_session_service_pb";
import { encodeBase64Url, fromTimestamp } from "@depute/core";
import { type CallerSession, type Keypair, requestSession, type SessionRequest } from "@depute/dct";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { signKeyRevocation } from "../rules/key-revocation.ts";
import {
  alice,
  attenuate,
  bob,
  CALL,
  engine,
  id,
  mint,
  readFile,
  requirePresent,
  revocation,
  withProof,
} from "../testing/holders.ts";
import { type Platform, startPlatform } from "../testing/platform.ts";
import { refusal } from "../testing/refusal.ts";
import { toKeyRevocation } from "./revocation-service.ts";

const HOST = "https://depute.example";
const OPEN = { htm: "POST", htu: `${HOST}/depute.tokens.v1.HolderSessionService/OpenHolderSession` };
const CLOSE = { htm: "POST", htu: `${HOST}/depute.tokens.v1.HolderSessionService/CloseHolderSession` };

let platform: Platform;
beforeEach(async () => {
  platform = await startPlatform();
});
afterEach(() => platform.stop());

const ask = (caller: Keypair, token?: SerializedDCT, more: object = {}) =>
  requestSession(engine, caller, {
    ...{ ...OPEN, audience: HOST, now: platform.clock.now(), ...more },
    ...(token !== undefined && { token: token.token }),
  });
const send = ({ proof }: SessionRequest, token?: SerializedDCT, more: object = {}) =>
  platform.sessions.openHolderSession({ proof, audience: HOST, ...(token && { token }), ...more });

async function accepted(
  request: SessionRequest,
  answer: Promise<OpenHolderSessionResponse>,
): Promise<CallerSession> {
  const { result } = await answer;
  if (result.case !== "grant") throw new Error(`denied: ${result.value?.type}`);
  const { id: name, signer, expireTime, verifierKey, signature } = result.value;
  const grant = {
    ...{ id: name, signer, expiresAt: fromTimestamp(requirePresent(expireTime)) },
    verifierKey: encodeBase64Url(verifierKey),
    signature: encodeBase64Url(signature),
  };
  const { principal } = await platform.tokens.getIssuer({});
  return request.accept(grant, principal);
}

async function open(caller: Keypair, token?: SerializedDCT, more: object = {}) {
  const request = ask(caller, token);
  return accepted(request, send(request, token, more));
}

const denialOf = async (answer: Promise<OpenHolderSessionResponse>) => {
  const { result } = await answer;
  return result.case === "denial" ? [result.value.type, result.value.detail] : result.case;
};

async function call(token: SerializedDCT, jwt: string, more: object = {}) {
  const { result } = await platform.tokens.verifyToken({
    ...{ token, requested: readFile(), proof: { jwt, method: CALL.htm, target: CALL.htu }, ...more },
  });
  return result.case === "denial" ? result.value.type : "allowed";
}

const now = () => ({ ...CALL, now: platform.clock.now() });

describe("a session", () => {
  it("replaces its holder's proof for many calls, each code once (B5)", async () => {
    const token = requirePresent((await mint(platform)).token);
    const session = await open(alice, token);
    const proofs = [session.prove(now()), session.prove(now()), session.prove(now())];
    // The calls arrive in reverse order, because a holder session must accept them in any order.
    for (const proof of proofs.toReversed()) expect(await call(token, proof)).toBe("allowed");
    for (const proof of proofs) expect(await call(token, proof)).toBe(DenialType.REPLAYED_PROOF);
    const together = session.prove(now());
    const twice = await Promise.all([call(token, together), call(token, together)]);
    expect(twice.sort()).toEqual([DenialType.REPLAYED_PROOF, "allowed"]);
  });

  it("uses up the code of a denied call", async () => {
    const token = requirePresent((await mint(platform)).token);
    const session = await open(alice, token);
    const proof = session.prove(now());
    const requested = { namespace: "docs", action: "read", resource: "/elsewhere" };
    expect(await call(token, proof, { requested })).toBe(DenialType.CAPABILITY_NOT_GRANTED);
    expect(await call(token, proof)).toBe(DenialType.REPLAYED_PROOF);
  });

  it("without a token identifies the caller", async () => {
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

  it("accepts the proof in the header where calls need credentials", async () => {
    const strict = await startPlatform([], ["--auth", "required", "--internal-secret", "s".repeat(32)]);
    try {
      const request = requestSession(engine, alice, { ...OPEN, audience: HOST, now: strict.clock.now() });
      const headers = { dpop: request.proof };
      const { result } = await strict.sessions.openHolderSession({ audience: HOST }, { headers });
      expect(result.case).toBe("grant");
      expect((await refusal(strict.sessions.openHolderSession({ audience: HOST }))).reason).toBe(
        "UNAUTHENTICATED",
      );
    } finally {
      await strict.stop();
    }
  });

  it("is valid only for its token, audience and call", async () => {
    const { token: first } = await mint(platform);
    const token = requirePresent(first);
    const narrowed = requirePresent((await attenuate(platform, token, alice, alice)).token);
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

  it("grants nothing itself: each call verifies the token (R10)", async () => {
    const { token, revocationId } = await mint(platform, { lifetime: durationFromMs(600_000) });
    const session = await open(alice, token, { lifetime: durationFromMs(3600_000) });
    expect(session.terms.expiresAt).toBe(platform.clock.now() + 600_000);
    expect(await call(requirePresent(token), session.prove(now()))).toBe("allowed");
    await platform.revocations.revokeToken({ entry: revocation(platform, revocationId, alice) });
    expect(await call(requirePresent(token), session.prove(now()))).toBe(DenialType.REVOKED);
  });

  it("ends at its expiry, with its process, with its key's revocation and on close", async () => {
    const token = requirePresent((await mint(platform)).token);
    const late = await open(alice, token, { lifetime: durationFromMs(1_000) });
    const proof = late.prove(now());
    platform.clock.advance(1001);
    expect(await call(token, proof)).toBe(DenialType.INVALID_PROOF);

    const closed = await open(alice, token);
    const at = { ...CLOSE, now: platform.clock.now() };
    await platform.sessions.closeHolderSession({ proof: closed.prove(at), token });
    expect(await call(token, closed.prove(now()))).toBe(DenialType.INVALID_PROOF);
    await platform.sessions.closeHolderSession({ proof: closed.prove(at), token });

    const before = await open(alice, token);
    await platform.restart();
    expect(await call(token, before.prove(now()))).toBe(DenialType.INVALID_PROOF);

    const compromised = await open(alice, token);
    const statement = signKeyRevocation(
      engine,
      { key: id(alice), keepBefore: 0, now: platform.clock.now() },
      alice,
    );
    await platform.revocations.revokeKey({ revocation: toKeyRevocation(statement) });
    expect(await call(token, compromised.prove(now()))).toBe(DenialType.INVALID_PROOF);
  });

  it("is closed only by its holder", async () => {
    const token = requirePresent((await mint(platform)).token);
    const session = await open(alice, token);
    const proof = session.prove({ ...CLOSE, now: platform.clock.now() });
    const forged = `${proof.slice(0, -43)}${"A".repeat(43)}`;
    expect((await refusal(platform.sessions.closeHolderSession({ proof: forged, token }))).reason).toBe(
      "TOKEN_DENIED",
    );
    expect(await call(token, session.prove(now()))).toBe("allowed");
  });
});

describe("OpenHolderSession", () => {
  it("opens one session for a proof, for the token's holder, with a proof for this purpose", async () => {
    const { token: first, revocationId } = await mint(platform);
    const token = requirePresent(first);
    const request = ask(alice, token);
    await accepted(request, send(request, token));
    expect(await denialOf(send(request, token))).toEqual([DenialType.REPLAYED_PROOF, undefined]);

    expect(await denialOf(send(ask(bob, token), token))).toEqual([DenialType.INVALID_PROOF, "jwk"]);
    expect(await denialOf(send(ask(alice, token)))).toEqual([DenialType.INVALID_PROOF, "ath"]);
    const elsewhere = { audience: "https://elsewhere.example" };
    expect((await denialOf(send(ask(alice, token), token, elsewhere)))?.[0]).toBe(DenialType.INVALID_PROOF);
    const otherCall = ask(alice, token, { htu: CALL.htu });
    expect(await denialOf(send(otherCall, token))).toEqual([DenialType.INVALID_PROOF, "htu"]);
    const plain = withProof(platform, alice, "HolderSessionService/OpenHolderSession").headers.dpop;
    expect((await denialOf(platform.sessions.openHolderSession({ proof: plain, audience: HOST })))?.[0]).toBe(
      DenialType.INVALID_PROOF,
    );
    expect(await denialOf(platform.sessions.openHolderSession({ audience: HOST }))).toEqual([
      DenialType.PROOF_REQUIRED,
      undefined,
    ]);
    await platform.revocations.revokeToken({ entry: revocation(platform, revocationId, alice) });
    expect((await denialOf(send(ask(alice, token), token)))?.[0]).toBe(DenialType.REVOKED);
  });

  it("limits the sessions of each principal", async () => {
    for (let n = 0; n < 64; n++) await open(bob);
    expect(await denialOf(send(ask(bob)))).toEqual([
      DenialType.INTERNAL_CONTEXT,
      "the limit of sessions is reached",
    ]);
    await open(alice);
    platform.clock.advance(901_000);
    await open(bob);
  });

  it("is recorded in the audit", async () => {
    await open(alice);
    await denialOf(platform.sessions.openHolderSession({ audience: HOST }));
    const decisions = (await platform.audit()).filter(({ kind }) => kind === "open_session");
    expect(decisions).toMatchObject([
      { principal: id(alice), decision: "allowed", reason: "" },
      { principal: "", decision: "denied", reason: "proof_required" },
    ]);
  });
});
