import { BlockValidity } from "@depute/contracts/depute/tokens/v1/authority_explanation_pb";
import { canonicalJson, fromTimestamp, toTimestamp } from "@depute/core";
import { type AuthorityBundle, formatTime, signAuthorityBundle, verifyAuthorityBundle } from "@depute/dct";
import { followRootSuccessions } from "@depute/dct/transparency";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import {
  alice,
  attenuate,
  bob,
  carol,
  engine,
  id,
  mallory,
  mint,
  READ,
  requirePresent,
  revocation,
  withProof,
} from "../testing/holders.ts";
import { type Platform, startPlatform } from "../testing/platform.ts";
import { refusal } from "../testing/refusal.ts";

let platform: Platform;
beforeEach(async () => {
  platform = await startPlatform();
});
afterEach(() => platform.stop());

/** Creates Alice's token, and Bob's attenuated token with a smaller budget and an earlier expiry. */
async function chain() {
  const root = await mint(platform);
  platform.clock.advance(1000);
  const leaf = await attenuate(platform, root.token, alice, bob, {
    allowedCapabilities: { capabilities: [READ] },
    maxBudgetMicrocents: 100n,
  });
  return { root, leaf };
}

const explain = (request: object, options?: { headers: Record<string, string> }) =>
  platform.delegations.explainAuthority(request, options);
const ofDelegation = (delegationId: string) => ({
  subject: { case: "delegation" as const, value: { delegationId } },
});
const roots = async () => {
  const { trustedRoots } = await platform.tokens.getIssuer({});
  return { roots: new Set(trustedRoots), logs: new Set<string>() };
};

it("names each block's parties, its privilege, and its narrowing", async () => {
  const { root, leaf } = await chain();
  const { explanation } = await explain(ofDelegation(leaf.delegationId));
  expect(explanation).toMatchObject({
    kind: "delegation",
    principal: id(bob),
    validThen: true,
    validNow: true,
  });
  expect(explanation?.blocks).toMatchObject([
    {
      revocationId: root.revocationId,
      delegatee: id(alice),
      maxBudgetMicrocents: 1000n,
      remainingDepth: 3,
      narrowed: [],
    },
    {
      ...{ revocationId: leaf.revocationId, delegator: id(alice), delegatee: id(bob) },
      ...{ capabilities: [READ], maxBudgetMicrocents: 100n, remainingDepth: 2 },
      ...{ narrowed: ["capabilities", "budget"], contentKnown: true },
    },
  ]);
});

it("of a retired root was valid until then, and a reader follows its successor", async () => {
  const { root, leaf } = await chain();
  const { principal: pinned } = await platform.tokens.getIssuer({});
  const time = toTimestamp(platform.clock.now());
  platform.clock.advance(1000);
  const { key } = await platform.rootKeys.rotateRootKey({ requestId: "1", retireNow: true });
  const { explanation, bundle } = await explain({ ...ofDelegation(leaf.delegationId), time });
  expect(explanation).toMatchObject({ validThen: true, validNow: false });
  expect(explanation?.blocks).toMatchObject([
    {
      revocationId: root.revocationId,
      validityThen: BlockValidity.VALID,
      validityNow: BlockValidity.REVOKED,
    },
    { revocationId: leaf.revocationId, validityNow: BlockValidity.VALID },
  ]);
  const { earlier, successor, createTime, ...signatures } = requirePresent(key?.succession);
  const statement = {
    ...{ from: earlier, to: successor, createdAt: formatTime(fromTimestamp(requirePresent(createTime))) },
    fromSignature: Buffer.from(signatures.earlierSignature).toString("base64url"),
    toSignature: Buffer.from(signatures.successorSignature).toString("base64url"),
  };
  const verdictOf = (roots: ReadonlySet<string>) =>
    verifyAuthorityBundle(engine, bundle, { roots, logs: new Set() }).ok;
  expect(verdictOf(new Set([pinned]))).toBe(false);
  expect(verdictOf(followRootSuccessions(engine, [pinned], [statement]))).toBe(true);
});

it("distinguishes the validity at a time from the present one", async () => {
  const { root, leaf } = await chain();
  const before = platform.clock.now();
  platform.clock.advance(1000);
  const { token } = root;
  await platform.revocations.revokeToken({
    entry: revocation(platform, root.revocationId, alice, "chain"),
    token: requirePresent(token),
  });
  const at = (ms: number) => explain({ ...ofDelegation(leaf.delegationId), time: toTimestamp(ms) });
  const validities = async (ms: number) =>
    (await at(ms)).explanation?.blocks.map(({ validityThen }) => validityThen);
  const { VALID, REVOKED, NOT_RECORDED } = BlockValidity;
  expect(await validities(before)).toEqual([VALID, VALID]);
  expect(await validities(before - 1)).toEqual([VALID, NOT_RECORDED]);
  expect(await validities(platform.clock.now())).toEqual([REVOKED, VALID]);
  const { explanation, bundle } = await at(before);
  expect(explanation).toMatchObject({ validThen: true, validNow: false });
  expect(verifyAuthorityBundle(engine, bundle, await roots())).toMatchObject({
    ok: true,
    checks: [
      { name: "signature" },
      { name: "proofs" },
      { name: "blocks" },
      { name: "revocations", detail: "1 signed revocations" },
    ],
  });

  platform.clock.advance(3_600_000);
  const over = await explain(ofDelegation(leaf.delegationId));
  expect(over.explanation?.blocks.map(({ validityNow }) => validityNow)).toEqual([
    REVOKED,
    BlockValidity.EXPIRED,
  ]);
});

it("explains a token by itself, and puts the token's signatures into the bundle", async () => {
  const { leaf } = await chain();
  const { explanation, bundle } = await explain({
    subject: { case: "token", value: requirePresent(leaf.token) },
  });
  expect(explanation).toMatchObject({ kind: "token", subjectId: leaf.revocationId, principal: id(bob) });
  const { checks } = verifyAuthorityBundle(engine, bundle, await roots());
  expect(checks.map(({ name, ok }) => `${name} ${ok}`)).toEqual([
    "signature true",
    "proofs true",
    "blocks true",
    "token true",
    "revocations true",
  ]);
});

it("keeps its facts over a restart, and shows audited decisions to callers that may read the log", async () => {
  const { leaf } = await chain();
  await platform.restart();
  const { bundle } = await explain(ofDelegation(leaf.delegationId));
  const { audit } = (JSON.parse(bundle) as AuthorityBundle).statement;
  expect(audit).toMatchObject([{ kind: "attenuate", decision: "allowed" }]);
});

describe("callers", () => {
  it("are the parties of the chain; to others the delegation does not exist", async () => {
    const { leaf } = await chain();
    const options = (caller: typeof bob) => withProof(platform, caller, "DelegationService/ExplainAuthority");
    const { bundle } = await explain(ofDelegation(leaf.delegationId), options(bob));
    expect((JSON.parse(bundle) as AuthorityBundle).statement.audit).toBeUndefined();
    expect(await refusal(explain(ofDelegation(leaf.delegationId), options(mallory)))).toMatchObject({
      reason: "DELEGATION_NOT_FOUND",
    });
  });

  it("learn of a token that is not recorded", async () => {
    const { leaf } = await chain();
    const other = await startPlatform();
    const { token } = await mint(other).finally(() => other.stop());
    for (const [value, reason] of [
      [requirePresent(token), "TOKEN_DENIED"],
      [{ ...requirePresent(leaf.token), token: "e30" }, "TOKEN_MALFORMED"],
    ] as const) {
      expect(await refusal(explain({ subject: { case: "token", value } }))).toMatchObject({ reason });
    }
  });
});

describe("a bundle that was changed is refused", () => {
  const changes: Record<string, readonly [failing: string, change: (bundle: Changed) => void]> = {
    "the holder": ["signature", ({ statement }) => Object.assign(statement, { principal: id(carol) })],
    "the verdict": ["signature", ({ statement }) => Object.assign(statement, { validNow: false })],
    "a wider budget": [
      "blocks",
      ({ statement }) => Object.assign(statement.blocks[1].block, { maxBudgetMicrocents: 1e6 }),
    ],
    "a dropped block": ["token", ({ statement }) => statement.blocks.shift()],
    "another format": ["form", (bundle) => Object.assign(bundle, { format: "other" })],
    "a list in place of a text": ["form", (bundle) => Object.assign(bundle, { signature: [] })],
  };
  it.each(Object.keys(changes))("%s", async (name) => {
    const [failing, change] = requirePresent(changes[name]);
    const { leaf } = await chain();
    const { bundle } = await explain({ subject: { case: "token", value: requirePresent(leaf.token) } });
    const changed = JSON.parse(bundle) as Changed;
    change(changed);
    const { ok, checks } = verifyAuthorityBundle(engine, canonicalJson(changed), await roots());
    expect(ok).toBe(false);
    expect(checks.filter((check) => !check.ok).map(({ name }) => name)).toContain(failing);
  });

  it("a token without a budget, in place of the explained one", async () => {
    const { leaf } = await chain();
    const { bundle } = await explain({ subject: { case: "token", value: requirePresent(leaf.token) } });
    const { token } = await mint(platform, { maxBudgetMicrocents: 0n });
    const changed = { ...JSON.parse(bundle), token: requirePresent(token).token };
    const { checks } = verifyAuthorityBundle(engine, canonicalJson(changed), await roots());
    expect(checks.find(({ name }) => name === "token")).toMatchObject({
      ...{ ok: false, detail: "token: other blocks than the statement" },
    });
  });

  it("another signer", async () => {
    const { leaf } = await chain();
    const { bundle } = await explain(ofDelegation(leaf.delegationId));
    const { statement, revocations } = JSON.parse(bundle) as AuthorityBundle;
    const forged = canonicalJson(signAuthorityBundle(engine, { statement, revocations }, mallory));
    expect(verifyAuthorityBundle(engine, forged, await roots())).toMatchObject({
      ok: false,
      checks: [{ name: "signature", ok: false, detail: "signer: not a trusted root" }, {}, {}, {}],
    });
  });
});

// biome-ignore lint/suspicious/noExplicitAny: a changed bundle has no type
type Changed = any;
