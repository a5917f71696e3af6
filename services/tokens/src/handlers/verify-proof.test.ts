import { DenialType } from "@depute/contracts/delegateos/v0/delegation_pb";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { isAllowed, typeOf } from "../testing/decisions.ts";
import {
  alice,
  bob,
  CALL,
  CONTRACT,
  id,
  mallory,
  mint,
  newRequest,
  prove,
  READ,
  requirePresent,
  verify,
  withProof,
} from "../testing/holders.ts";
import { type Platform, startPlatform } from "../testing/platform.ts";
import { refusal } from "../testing/refusal.ts";

describe("VerifyProof", () => {
  let platform: Platform;
  beforeEach(async () => {
    platform = await startPlatform();
  });
  afterEach(() => platform.stop());

  const proof = (jwt: string, target = CALL.htu) => ({ jwt, method: "POST", target });

  it("returns the principal of a proof, once", async () => {
    const jwt = prove(platform, bob);
    const { result } = await platform.tokens.verifyProof({ proof: proof(jwt) });
    expect(result).toEqual({ case: "principal", value: id(bob) });
    await platform.restart();
    const again = platform.tokens.verifyProof({ proof: proof(jwt) });
    expect(await typeOf(again)).toBe(DenialType.REPLAYED_PROOF);
  });

  it("requires the proof to name the presented token", async () => {
    const { token } = await mint(platform);
    const ask = async (jwt: string, more: object) => {
      return (await platform.tokens.verifyProof({ proof: proof(jwt), ...more })).result.case;
    };
    const naming = () => prove(platform, alice, { token: requirePresent(token).token });
    expect(await ask(naming(), { token: requirePresent(token) })).toBe("principal");
    expect(await ask(naming(), {})).toBe("denial");
    expect(await ask(prove(platform, alice), { token: requirePresent(token) })).toBe("denial");
  });

  it("denies the proof of a key that does not hold the presented token", async () => {
    const token = requirePresent((await mint(platform)).token);
    const ask = (jwt: string) => platform.tokens.verifyProof({ proof: proof(jwt), token });
    const { result } = await ask(prove(platform, mallory, { token: token.token }));
    expect(result).toMatchObject({
      case: "denial",
      value: { type: DenialType.INVALID_PROOF, detail: expect.stringContaining("jwk") },
    });
    expect((await ask(prove(platform, alice, { token: token.token }))).result.case).toBe("principal");
  });

  it.each([
    ["no proof", "", DenialType.PROOF_REQUIRED],
    ["no JWS", "abc", DenialType.INVALID_PROOF],
  ])("denies %s", async (_, jwt, type) => {
    expect(await typeOf(platform.tokens.verifyProof({ proof: proof(jwt) }))).toBe(type);
  });

  it("shares used proofs with VerifyToken", async () => {
    const { token } = await mint(platform);
    const jwt = prove(platform, alice, { token: requirePresent(token).token });
    await platform.tokens.verifyProof({ proof: proof(jwt), token: requirePresent(token) });
    expect(await typeOf(verify(platform, token, alice, { jwt }))).toBe(DenialType.REPLAYED_PROOF);
  });

  it("keeps space for token holders when strangers fill theirs", async () => {
    const small = await startPlatform(["--max-seen-proofs", "4"]);
    try {
      const ask = async () =>
        (await small.tokens.verifyProof({ proof: proof(prove(small, mallory)) })).result.case;
      expect([await ask(), await ask(), await ask()]).toEqual(["principal", "principal", "denial"]);
      expect(await isAllowed(verify(small, (await mint(small)).token, alice))).toBe(true);
    } finally {
      await small.stop();
    }
  });

  it("identifies this service's own callers", async () => {
    const call = "TokenService/GetIssuer";
    const options = withProof(platform, alice, call);
    await platform.tokens.getIssuer({}, options);
    const replayed = await refusal(platform.tokens.getIssuer({}, options));
    expect(replayed).toMatchObject({
      reason: "UNAUTHENTICATED",
      metadata: { denial: "replayed_proof", claim: "jti" },
    });
    const elsewhere = await refusal(
      platform.tokens.getIssuer({}, withProof(platform, alice, "TokenService/MintToken")),
    );
    const expected = "https://depute.example/depute.tokens.v1.TokenService/GetIssuer";
    expect(elsewhere).toMatchObject({ reason: "UNAUTHENTICATED", metadata: { claim: "htu", expected } });
    const stranger = refusal(
      platform.tokens.mintToken(
        { requestId: newRequest(), delegatee: id(bob), capabilities: [READ], contractId: CONTRACT },
        withProof(platform, mallory, "TokenService/MintToken"),
      ),
    );
    expect((await stranger).reason).toBe("CALLER_NOT_ALLOWED");
  });
});
