import { readFileSync } from "node:fs";
import { join } from "node:path";
import { create } from "@bufbuild/protobuf";
import { durationFromMs } from "@bufbuild/protobuf/wkt";
import { DenialType } from "@depute/contracts/delegateos/v0/delegation_pb";
import { SerializedDCTSchema } from "@depute/contracts/delegateos/v0/token_pb";
import { fromTimestamp } from "@depute/core";
import { createToken, formatTime, parseToken, serialiseToken } from "@depute/dct";
import { cellsOf } from "@depute/store/testing";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import {
  alice,
  attenuate,
  bob,
  CONTRACT,
  carol,
  engine,
  id,
  mallory,
  mint,
  newRequest,
  otherRoot,
  READ,
  readFile,
  requirePresent,
  SEARCH,
  verify,
  withProof,
} from "../testing/holders.ts";
import { type Platform, startPlatform } from "../testing/platform.ts";
import { refusal } from "../testing/refusal.ts";

let platform: Platform;
beforeEach(async () => {
  platform = await startPlatform();
});
afterEach(() => platform.stop());

const authorityOf = (text: string) => {
  const parsed = parseToken(text);
  if (!parsed.ok) throw new Error(parsed.denial.type);
  return parsed.token.authority;
};
const foreignToken = (more: object = {}, signer = otherRoot) => {
  const params = { delegatee: id(alice), capabilities: [READ], contractId: CONTRACT, ...more };
  const limits = { maxBudgetMicrocents: 10, maxChainDepth: 1 };
  const token = createToken(engine, { ...limits, ...params }, signer, { now: platform.clock.now() });
  return create(SerializedDCTSchema, serialiseToken(token));
};

it("carries a delegation from minting through the worker's call to its end", async () => {
  const minted = await mint(platform);
  const narrowed = await attenuate(platform, minted.token, alice, bob, {
    allowedCapabilities: { capabilities: [READ] },
    maxBudgetMicrocents: 100n,
  });
  const { result, principal, blocks } = await verify(platform, narrowed.token, bob, { spentMicrocents: 40n });
  expect(result).toMatchObject({
    case: "scope",
    value: {
      capabilities: [READ],
      remainingBudgetMicrocents: 60n,
      chainDepth: 1n,
      maxChainDepth: 3n,
      contractId: CONTRACT,
      delegationId: narrowed.delegationId,
    },
  });
  expect(principal).toBe(id(bob));
  expect(blocks.map(({ revocationId }) => revocationId)).toEqual([
    minted.revocationId,
    narrowed.revocationId,
  ]);

  const { revocation } = await platform.revocations.revokeMintedToken({
    revocationId: minted.revocationId,
    scope: 2,
  });
  expect(revocation?.sequence).toBe(1n);
  const after = await verify(platform, narrowed.token, bob);
  expect(after.result).toMatchObject({ case: "denial", value: { type: DenialType.REVOKED } });
  expect(after.revocationSequence).toBe(1n);
});

describe("GetIssuer", () => {
  it("returns the platform's root, permanent across restarts, and the other trusted roots", async () => {
    const before = await platform.tokens.getIssuer({});
    await platform.restart();
    expect(await platform.tokens.getIssuer({})).toEqual(before);
    expect(before.trustedRoots).toEqual([before.principal]);
    expect(readFileSync(join(platform.dataDir, "root.key"), "utf8")).toMatch(/^[A-Za-z0-9_-]{43}\n$/);
  });
});

describe("MintToken", () => {
  it("sets times, ids and a lifetime of an hour", async () => {
    const { token, delegationId } = await mint(platform);
    const now = platform.clock.now();
    expect(authorityOf(requirePresent(token).token)).toMatchObject({
      delegatee: id(alice),
      delegationId,
      parentDelegationId: "del_000000000000",
      chainDepth: 0,
      maxChainDepth: 3,
      maxBudgetMicrocents: 1000,
      issuedAt: formatTime(now),
      expiresAt: formatTime(now + 3_600_000),
    });
    expect(delegationId).toMatch(/^del_[0-9a-f]{12}$/);
  });

  it("returns the same token for a replay, also after a restart, without storing it", async () => {
    const requestId = newRequest();
    const first = await mint(platform, { requestId });
    platform.clock.advance(1000);
    expect(await mint(platform, { requestId })).toEqual(first);
    const cells = await platform.whileDown(async () => {
      const store = await platform.openOwnStore();
      return cellsOf(store).finally(() => store.close());
    });
    expect(await mint(platform, { requestId })).toEqual(first);

    const signature = requirePresent(parsedSignature(requirePresent(first.token).token));
    for (const secret of [requirePresent(first.token).token, signature]) {
      expect(cells.some((cell) => cell.includes(secret))).toBe(false);
    }
    expect(cells.some((cell) => cell.includes(first.revocationId))).toBe(true);
  });

  it("refuses the same request id with another body", async () => {
    const requestId = newRequest();
    await mint(platform, { requestId });
    const refused = await refusal(mint(platform, { requestId, maxChainDepth: 2 }));
    expect(refused).toMatchObject({ reason: "REQUEST_ID_REUSED", metadata: { request_id: requestId } });
  });

  it.each([
    ["a lifetime over a day", { lifetime: durationFromMs(86_401_000) }, "lifetime"],
    ["no capability", { capabilities: [] }, "capabilities"],
    ["an unregistered action", { capabilities: [{ ...READ, action: "burn" }] }, "capabilities"],
    ["a resource with dots", { capabilities: [{ ...READ, resource: "/a/../b" }] }, "capabilities"],
    ["a key of small order", { delegatee: `AQ${"A".repeat(41)}` }, "delegatee"],
    ["a reserved delegation id", { delegationId: "del_000000000000" }, "delegation_id"],
    ["a malformed contract id", { contractId: "contract" }, "contract_id"],
  ])("refuses %s", async (_, more, field) => {
    const { reason, fields } = await refusal(mint(platform, more));
    expect(reason).toBe("INVALID_REQUEST");
    expect(fields).toEqual([field]);
  });

  it("refuses parts that no token may have, and records nothing", async () => {
    const wide = { namespace: "docs", action: "read", resource: `/${"a".repeat(1000)}` };
    const requestId = newRequest();
    const refused = await refusal(mint(platform, { requestId, capabilities: Array(64).fill(wide) }));
    expect(refused.reason).toBe("INVALID_REQUEST");
    expect((await mint(platform, { requestId })).delegationId).not.toBe("");
  });

  it("is limited to configured minters where callers need credentials", async () => {
    const strict = await startPlatform(
      ["--minters", id(alice)],
      ["--auth", "required", "--internal-secret", "between-processes"],
    );
    try {
      const body = { requestId: "r", delegatee: id(bob), capabilities: [READ], contractId: CONTRACT };
      const call = "TokenService/MintToken";
      expect((await refusal(strict.tokens.mintToken(body))).reason).toBe("UNAUTHENTICATED");
      const refused = refusal(strict.tokens.mintToken(body, withProof(strict, mallory, call)));
      expect((await refused).reason).toBe("CALLER_NOT_ALLOWED");
      const minted = await strict.tokens.mintToken(body, withProof(strict, alice, call));
      expect(authorityOf(requirePresent(minted.token).token).delegatee).toBe(id(bob));
      expect(await strict.audit()).toContainEqual(
        expect.objectContaining({
          kind: "mint",
          caller: id(mallory),
          decision: "denied",
          reason: "caller_not_allowed",
        }),
      );
    } finally {
      await strict.stop();
    }
  });
});

describe("RecordToken", () => {
  it("records the blocks of a token of another trusted root, once", async () => {
    const trusting = await startPlatform(["--trusted-roots", id(otherRoot)]);
    try {
      const token = foreignToken({ delegationId: "del_0000000000aa" });
      const first = await trusting.tokens.recordToken({ token });
      expect(first.delegationId).toBe("del_0000000000aa");
      expect(first.blocks).toMatchObject([{ signer: id(otherRoot), delegatee: id(alice) }]);
      expect(await trusting.tokens.recordToken({ token })).toEqual(first);
    } finally {
      await trusting.stop();
    }
  });

  it("refuses a token of an untrusted root", async () => {
    const refused = await refusal(platform.tokens.recordToken({ token: foreignToken() }));
    expect(refused).toMatchObject({ reason: "TOKEN_DENIED", metadata: { denial: "invalid_signature" } });
  });

  it("refuses input that is not a token", async () => {
    const token = { token: "AAAA", format: "delegateos-sjt-v1" };
    expect((await refusal(platform.tokens.recordToken({ token }))).reason).toBe("TOKEN_MALFORMED");
  });
});

describe("PrepareAttenuation", () => {
  it("fills in the attenuator, the contract and a new delegation", async () => {
    const { token } = await mint(platform);
    const { attenuation, digest } = await platform.tokens.prepareAttenuation({
      token: requirePresent(token),
      attenuation: { delegatee: id(bob) },
    });
    expect(attenuation).toMatchObject({ attenuator: id(alice), delegatee: id(bob), contractId: CONTRACT });
    expect(attenuation?.delegationId).toMatch(/^del_[0-9a-f]{12}$/);
    expect(attenuation?.allowedCapabilities).toBeUndefined();
    expect(digest).toHaveLength(32);
  });

  it("distinguishes an empty list from an absent one", async () => {
    const { token } = await mint(platform);
    const nothing = await attenuate(platform, token, alice, bob, {
      allowedCapabilities: { capabilities: [] },
    });
    const { result } = await verify(platform, nothing.token, bob);
    expect(result).toMatchObject({ case: "denial", value: { type: DenialType.CAPABILITY_NOT_GRANTED } });
    const all = await attenuate(platform, token, alice, bob);
    expect((await verify(platform, all.token, bob)).result.case).toBe("scope");
  });

  it.each([
    ["more capabilities", { allowedCapabilities: { capabilities: [{ ...READ, resource: "/**" }] } }],
    ["more budget", { maxBudgetMicrocents: 1001n }],
    ["a longer life", { expiresAt: "2027-01-01T00:00:00Z" }],
    ["as many hops", { maxChainDepth: 3n }],
    ["another contract", { contractId: "ct_ffffffffffff" }],
    ["an attenuator that does not hold it", { attenuator: id(mallory) }],
  ])("refuses %s", async (_, more) => {
    const { token } = await mint(platform);
    expect(await refusal(attenuate(platform, token, alice, bob, more))).toMatchObject({
      reason: "ATTENUATION_VIOLATION",
      fields: ["attenuation"],
    });
  });

  it("refuses a link beyond the token's depth", async () => {
    const { token } = await mint(platform, { maxChainDepth: 0 });
    const { reason, metadata } = await refusal(attenuate(platform, token, alice, bob));
    expect(reason).toBe("ATTENUATION_VIOLATION");
    expect(metadata.detail).toContain("chain_depth_exceeded");
  });

  it.each([
    ["no block", undefined, "attenuation"],
    ["a malformed delegatee", { delegatee: "bob" }, "attenuation.delegatee"],
    ["a malformed time", { delegatee: id(bob), expiresAt: "tomorrow" }, "attenuation"],
  ])("refuses %s", async (_, attenuation, field) => {
    const { token } = await mint(platform);
    const request = { token: requirePresent(token), ...(attenuation && { attenuation }) };
    const { reason, fields } = await refusal(platform.tokens.prepareAttenuation(request));
    expect(reason).toBe("INVALID_REQUEST");
    expect(fields).toEqual([field]);
  });

  it("refuses an expired token", async () => {
    const { token } = await mint(platform);
    platform.clock.advance(3_600_001);
    const refused = await refusal(attenuate(platform, token, alice, bob));
    expect(refused).toMatchObject({ reason: "TOKEN_DENIED", metadata: { denial: "expired" } });
  });
});

describe("AttenuateToken", () => {
  it("refuses a signature of another key or of another block", async () => {
    const { token } = await mint(platform);
    expect((await refusal(attenuate(platform, token, mallory, bob))).reason).toBe("SIGNATURE_INVALID");
    const { attenuation, digest } = await platform.tokens.prepareAttenuation({
      token: requirePresent(token),
      attenuation: { delegatee: id(bob) },
    });
    const signature = engine.sign(digest, alice.privateKey);
    const other = { ...requirePresent(attenuation), delegatee: id(mallory) };
    const call = platform.tokens.attenuateToken({
      token: requirePresent(token),
      attenuation: other,
      signature,
    });
    expect((await refusal(call)).reason).toBe("SIGNATURE_INVALID");
  });

  it("returns the same token for the same signature", async () => {
    const { token } = await mint(platform);
    const { attenuation, digest } = await platform.tokens.prepareAttenuation({
      token: requirePresent(token),
      attenuation: { delegatee: id(bob) },
    });
    const signature = engine.sign(digest, alice.privateKey);
    const call = () =>
      platform.tokens.attenuateToken({
        token: requirePresent(token),
        attenuation: requirePresent(attenuation),
        signature,
      });
    expect(await call()).toEqual(await call());
  });

  it("refuses a block that verifiers would deny at once", async () => {
    const { token } = await mint(platform);
    const spent = refusal(attenuate(platform, token, alice, bob, { maxBudgetMicrocents: 0n }));
    expect(await spent).toMatchObject({ reason: "TOKEN_DENIED", metadata: { denial: "budget_exceeded" } });
  });

  it("refuses a wider block, also without PrepareAttenuation", async () => {
    const { token } = await mint(platform);
    const attenuation = {
      attenuator: id(alice),
      delegatee: id(bob),
      delegationId: "del_0000000000ff",
      contractId: CONTRACT,
      maxBudgetMicrocents: 5000n,
    };
    const signature = new Uint8Array(64);
    const call = platform.tokens.attenuateToken({ token: requirePresent(token), attenuation, signature });
    expect((await refusal(call)).reason).toBe("ATTENUATION_VIOLATION");
  });
});

describe("InspectToken", () => {
  it("shows a valid token without a proof, with each block's own expiry", async () => {
    const { token } = await mint(platform);
    const end = formatTime(platform.clock.now() + 60_000);
    const narrowed = await attenuate(platform, token, alice, bob, { expiresAt: end });
    const further = await attenuate(platform, narrowed.token, bob, carol);
    const { blocks, delegatee, result } = await platform.tokens.inspectToken({
      token: requirePresent(further.token),
    });
    expect(delegatee).toBe(id(carol));
    expect(blocks.map(({ signer }) => signer).slice(1)).toEqual([id(alice), id(bob)]);
    expect(
      blocks.slice(1).map(({ expireTime }) => formatTime(fromTimestamp(requirePresent(expireTime)))),
    ).toEqual([end, end]);
    expect(result).toMatchObject({ case: "scope", value: { capabilities: [READ, SEARCH], chainDepth: 2n } });
  });

  it("shows an invalid token with its denial", async () => {
    const { blocks, result } = await platform.tokens.inspectToken({ token: foreignToken() });
    expect(blocks).toMatchObject([{ signer: id(otherRoot) }]);
    expect(result).toMatchObject({ case: "denial", value: { type: DenialType.INVALID_SIGNATURE } });
  });

  it("reports whether it is for a contract", async () => {
    const token = requirePresent((await mint(platform)).token);
    const ask = async (more: object) => (await platform.tokens.inspectToken({ token, ...more })).result;
    expect((await ask({ contractId: CONTRACT })).case).toBe("scope");
    expect((await ask({ requiredCapabilities: ["docs:read", "web:search"] })).case).toBe("scope");
    const mismatch = { case: "denial", value: { type: DenialType.CONTRACT_MISMATCH } };
    expect(await ask({ contractId: "ct_000000000001" })).toMatchObject(mismatch);
    expect(await ask({ requiredCapabilities: ["docs:write"] })).toMatchObject(mismatch);
  });

  it.each(["", "????", "AAAA", "e30", "A".repeat(20_000)])(
    "refuses input that is not a token",
    async (text) => {
      const token = { token: text, format: "delegateos-sjt-v1" };
      const { reason, metadata } = await refusal(platform.tokens.inspectToken({ token }));
      expect(reason).toBe("TOKEN_MALFORMED");
      expect(metadata.detail).not.toContain("AAAA");
    },
  );

  it("is recorded in the audit with its caller, valid or not", async () => {
    const { token, revocationId } = await mint(platform);
    await platform.tokens.inspectToken({ token: requirePresent(token) });
    const call = withProof(platform, mallory, "TokenService/InspectToken");
    await platform.tokens.inspectToken({ token: foreignToken({}, mallory) }, call);
    const decisions = (await platform.audit()).filter(({ kind }) => kind === "inspect");
    expect(decisions).toMatchObject([
      { caller: "local", decision: "allowed", reason: "", blocks: [revocationId] },
      {
        caller: id(mallory),
        decision: "denied",
        reason: "invalid_signature: authority.issuer: not a trusted root",
      },
    ]);
  });
});

it("records every decision, and no token", async () => {
  const minted = await mint(platform);
  const narrowed = await attenuate(platform, minted.token, alice, bob);
  await verify(platform, narrowed.token, bob);
  await verify(platform, narrowed.token, bob, { requested: readFile("/elsewhere") });
  await platform.revocations.revokeMintedToken({ revocationId: minted.revocationId, scope: 1 });
  const decisions = await platform.audit();
  const chain = [minted.revocationId, narrowed.revocationId];
  const told = decisions.map(({ kind, caller, principal, decision, reason, blocks }) => {
    return [kind, caller, principal, decision, reason, blocks];
  });
  const { principal: root } = await platform.tokens.getIssuer({});
  expect(told).toHaveLength(5);
  expect(told).toEqual(
    expect.arrayContaining([
      ["mint", "local", id(alice), "allowed", "", [minted.revocationId]],
      ["attenuate", "local", id(bob), "allowed", "", chain],
      ["verify_token", "local", id(bob), "allowed", "", chain],
      ["verify_token", "local", id(bob), "denied", "capability_not_granted", chain],
      ["revoke", "local", root, "allowed", "block", [minted.revocationId]],
    ]),
  );
});

function parsedSignature(text: string): string | undefined {
  const parsed = parseToken(text);
  return parsed.ok ? parsed.token.signatures[0]?.signature : undefined;
}
