import { toJsonString } from "@bufbuild/protobuf";
import { durationFromMs } from "@bufbuild/protobuf/wkt";
import { DenialType } from "@depute/contracts/delegateos/v0/delegation_pb";
import type { SerializedDCT } from "@depute/contracts/delegateos/v0/token_pb";
import { VerifyTokenResponseSchema } from "@depute/contracts/depute/tokens/v1/token_service_pb";
import { canonicalBytes, encodeBase64Url } from "@depute/core";
import { createToken, parseToken, type SignedJSONToken, serialiseToken } from "@depute/dct";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { isAllowed, typeOf } from "../testing/decisions.ts";
import {
  alice,
  attenuate,
  bob,
  CONTRACT,
  carol,
  engine,
  id,
  mint,
  newRequest,
  otherRoot,
  prove,
  READ,
  readFile,
  requirePresent,
  verify,
} from "../testing/holders.ts";
import { type Platform, startPlatform } from "../testing/platform.ts";

let platform: Platform;
beforeAll(async () => {
  platform = await startPlatform(["--trusted-roots", id(otherRoot)]);
});
afterAll(() => platform.stop());

/** Creates a chain from the root through alice and bob to carol. The service has cached the chain's signatures. */
async function known(): Promise<{ text: SerializedDCT; token: SignedJSONToken; ids: string[] }> {
  const root = await mint(platform);
  const second = await attenuate(platform, root.token, alice, bob, { maxBudgetMicrocents: 100n });
  const third = await attenuate(platform, second.token, bob, carol, { maxBudgetMicrocents: 50n });
  const text = requirePresent(third.token);
  expect(await isAllowed(verify(platform, text, carol))).toBe(true);
  const parsed = parseToken(text.token);
  if (!parsed.ok) throw new Error(parsed.denial.type);
  const ids = [root, second, third].map(({ revocationId }) => revocationId);
  return { text, token: parsed.token, ids };
}

const serialised = (token: unknown) =>
  ({ token: encodeBase64Url(canonicalBytes(token)), format: "delegateos-sjt-v1" }) as SerializedDCT;

describe("cached signatures cover the whole token (X1)", () => {
  type Change = (token: SignedJSONToken, other: SignedJSONToken) => unknown;
  const cases: Record<string, Change> = {
    "a wider authority": (token) => ({
      ...token,
      authority: { ...token.authority, maxBudgetMicrocents: token.authority.maxBudgetMicrocents + 1 },
    }),
    "a link with more": (token) => ({
      ...token,
      attenuations: token.attenuations.map((block, i) =>
        i === 1 ? { ...block, maxBudgetMicrocents: 51 } : block,
      ),
    }),
    "another signature of the same block": (token, other) => ({
      ...token,
      signatures: token.signatures.map((entry, i) => (i === 1 ? other.signatures[1] : entry)),
    }),
    "the links of another token": (token, other) => ({
      ...token,
      attenuations: other.attenuations,
      signatures: [token.signatures[0], ...other.signatures.slice(1)],
    }),
    "the links in another order": (token) => ({
      ...token,
      attenuations: token.attenuations.toReversed(),
      signatures: [token.signatures[0], token.signatures[2], token.signatures[1]],
    }),
    "a link left out": (token) => ({
      ...token,
      attenuations: token.attenuations.slice(1),
      signatures: [token.signatures[0], { ...token.signatures[2], covers: 0 }],
    }),
  };

  it.each(Object.entries(cases))("so that %s is invalid", async (_, change) => {
    const [one, other] = [await known(), await known()];
    const forged = serialised(change(one.token, other.token));
    const type = await typeOf(verify(platform, forged, carol));
    expect([DenialType.INVALID_SIGNATURE, DenialType.ATTENUATION_VIOLATION]).toContain(type);
    expect(await isAllowed(verify(platform, one.text, carol))).toBe(true);
  });

  it("so that its prefix is a token of the prefix's holder only", async () => {
    const { token } = await known();
    const { authority, attenuations, signatures, format } = token;
    const beginning = serialised({
      ...{ format, authority, attenuations: attenuations.slice(0, 1), signatures: signatures.slice(0, 2) },
    });
    expect(await typeOf(verify(platform, beginning, carol))).toBe(DenialType.INVALID_PROOF);
    expect(await isAllowed(verify(platform, beginning, bob))).toBe(true);
  });
});

describe("a token with cached signatures (X2)", () => {
  it("is checked again in every other respect", async () => {
    const { text, ids } = await known();
    const ask = (more: Record<string, unknown>) => typeOf(verify(platform, text, carol, more));
    expect(await ask({ jwt: "" })).toBe(DenialType.PROOF_REQUIRED);
    expect(await ask({ requested: readFile("/other/plan") })).toBe(DenialType.CAPABILITY_NOT_GRANTED);
    expect(await ask({ contractId: "ct_000000000001" })).toBe(DenialType.CONTRACT_MISMATCH);
    expect(await ask({ spentMicrocents: 50n })).toBe(DenialType.BUDGET_EXCEEDED);
    await platform.spend.reserveSpend({ requestId: newRequest(), token: text, amountMicrocents: 50n });
    expect(await ask({})).toBe(DenialType.BUDGET_EXCEEDED);
    await platform.revocations.revokeMintedToken({ revocationId: requirePresent(ids[0]), scope: 1 });
    expect(await ask({})).toBe(DenialType.REVOKED);
  });

  it("expires on time", async () => {
    const { token } = await mint(platform, { lifetime: durationFromMs(10_000) });
    expect(await isAllowed(verify(platform, token, alice))).toBe(true);
    platform.clock.advance(10_001);
    expect(await typeOf(verify(platform, token, alice))).toBe(DenialType.EXPIRED);
  });

  it("is denied after its root loses trust", async () => {
    const grant = { delegatee: id(alice), capabilities: [READ], contractId: CONTRACT };
    const limits = { maxBudgetMicrocents: 10, maxChainDepth: 1 };
    const now = platform.clock.now();
    const text = serialiseToken(
      createToken(engine, { ...grant, ...limits }, otherRoot, { now }),
    ) as SerializedDCT;
    expect(await isAllowed(verify(platform, text, alice))).toBe(true);
    const other = await startPlatform();
    try {
      expect(await typeOf(verify(other, text, alice))).toBe(DenialType.INVALID_SIGNATURE);
    } finally {
      await other.stop();
    }
  });

  it("is unaffected by a denied token with the same prefix", async () => {
    const { token } = (await mint(platform)) as { token: SerializedDCT };
    const parsed = parseToken(token.token);
    if (!parsed.ok) throw new Error(parsed.denial.type);
    const { signatures } = parsed.token;
    const signature = `${"A".repeat(42)}${signatures[0]?.signature.slice(42)}`;
    const broken = serialised({ ...parsed.token, signatures: [{ ...signatures[0], signature }] });
    expect(await typeOf(verify(platform, broken, alice))).toBe(DenialType.INVALID_SIGNATURE);
    expect(await isAllowed(verify(platform, token, alice))).toBe(true);
    expect(await typeOf(verify(platform, broken, alice))).toBe(DenialType.INVALID_SIGNATURE);
  });
});

describe("an answer (X3)", () => {
  it.each([
    ["that allows", {}],
    ["that denies", { requested: readFile("/other/plan") }],
  ])("%s is the same, whether the signatures were remembered or not", async (_, more) => {
    const { token } = (await mint(platform)) as { token: SerializedDCT };
    const ask = async () =>
      toJsonString(VerifyTokenResponseSchema, await verify(platform, token, alice, more));
    const first = await ask();
    expect(await ask()).toEqual(first);
    await platform.restart();
    expect(await ask()).toEqual(first);
  });

  it("to a forger does not depend on the cache", async () => {
    const [fresh, { token }] = [(await mint(platform)) as { token: SerializedDCT }, await known()];
    const parsed = parseToken(fresh.token.token);
    if (!parsed.ok) throw new Error(parsed.denial.type);
    const ask = async ({ authority, signatures, format }: SignedJSONToken) => {
      const widened = { ...authority, maxBudgetMicrocents: 2_000_000 };
      const forged = serialised({
        format,
        authority: widened,
        attenuations: [],
        signatures: signatures.slice(0, 1),
      });
      return toJsonString(VerifyTokenResponseSchema, await verify(platform, forged, alice));
    };
    expect(await ask(token)).toEqual(await ask(parsed.token));
  });

  it("checks a used proof as fully as a new one", async () => {
    const { token } = (await mint(platform)) as { token: SerializedDCT };
    const jwt = prove(platform, alice, { token: token.token });
    expect(await isAllowed(verify(platform, token, alice, { jwt }))).toBe(true);
    // A proof with a used jti and an invalid signature. The denial must not reveal that the jti was used.
    const [head, body] = jwt.split(".");
    const broken = `${head}.${body}.${"A".repeat(86)}`;
    expect(await typeOf(verify(platform, token, alice, { jwt: broken }))).toBe(DenialType.INVALID_PROOF);
    expect(await typeOf(verify(platform, token, alice, { jwt }))).toBe(DenialType.REPLAYED_PROOF);
  });
});
