import { ErrorReason } from "@depute/core";
import { attenuateToken, type CreateParams, createToken, type SignedJSONToken } from "@depute/dct";
import { describe, expect, it } from "vitest";
import { alice, bob, CONTRACT, carol, engine, id, otherRoot, READ } from "../testing/holders.ts";
import { type End, isNewEnd, lapsedAuthority, linksOf, type RecordedLink } from "./delegations.ts";

const PARENT = "del_0123456789ab";

function root(more: Partial<CreateParams> = {}): SignedJSONToken {
  const limits = { maxBudgetMicrocents: 10, maxChainDepth: 3 };
  const grant = { delegatee: id(alice), capabilities: [READ], contractId: CONTRACT };
  return createToken(engine, { ...limits, ...grant, ...more }, otherRoot, { now: 0 });
}

const refusal = (run: () => unknown) => {
  try {
    run();
  } catch (error) {
    return error as { reason: ErrorReason; metadata: Record<string, string> };
  }
  throw new Error("it was not refused");
};

describe("the delegations of a token", () => {
  it("lead from its root to its last block, each below the previous (8.2)", () => {
    const second = attenuateToken(engine, root(), { delegatee: id(bob) }, alice);
    const third = attenuateToken(engine, second, { delegatee: id(carol) }, bob);
    const links = linksOf(engine, third);
    expect(links.map(({ depth, block }) => [depth, block.signer, block.delegatee])).toEqual([
      [0, id(otherRoot), id(alice)],
      [1, id(alice), id(bob)],
      [2, id(bob), id(carol)],
    ]);
    expect(links.map(({ parentDelegationId }) => parentDelegationId)).toEqual([
      "del_000000000000",
      third.authority.delegationId,
      third.attenuations[0]?.delegationId,
    ]);
    expect(links.map(({ parentChainId }) => parentChainId)).toEqual([
      "",
      links[0]?.chainId,
      links[1]?.chainId,
    ]);
    expect(linksOf(engine, second)).toEqual(links.slice(0, 2));
  });

  it("differ for one block in two chains", () => {
    const [one, other] = [root(), root({ maxBudgetMicrocents: 9 })];
    const params = { delegatee: id(bob), delegationId: PARENT };
    const [a, b] = [one, other].map(
      (token) => linksOf(engine, attenuateToken(engine, token, params, alice))[1],
    );
    expect(a?.block.revocationId).toBe(b?.block.revocationId);
    expect(a?.chainId).not.toBe(b?.chainId);
  });

  it("are refused if the authority names a parent (8.2)", () => {
    const token = root({ parentDelegationId: PARENT, chainDepth: 1 });
    expect(refusal(() => linksOf(engine, token))).toMatchObject({
      reason: ErrorReason.DELEGATION_INVALID,
      metadata: { detail: "block 0: parentId: not that of a root" },
    });
  });
});

describe("a delegation's end", () => {
  const active: End = { state: "active", attestationId: "" };
  const completed: End = { state: "completed", attestationId: "" };
  const attested: End = { state: "completed", attestationId: "att_1" };
  const failed: End = { state: "failed", attestationId: "" };
  const revoked: End = { state: "revoked", attestationId: "" };

  it.each<[string, End, End, boolean]>([
    ["a completion", active, completed, true],
    ["a failure", active, failed, true],
    ["a repeated end", completed, completed, false],
    ["the same attestation again", attested, attested, false],
    ["the same end without an attestation", attested, completed, false],
    ["a later attestation", completed, attested, true],
  ])("accepts %s", (_, before, next, changes) => {
    expect(isNewEnd("del_1", before, next)).toBe(changes);
  });

  it.each<[string, End, End]>([
    ["a failure after a completion", completed, failed],
    ["a completion after a failure", failed, attested],
    ["a completion after a revocation", revoked, attested],
    ["another attestation", attested, { ...attested, attestationId: "att_2" }],
  ])("refuses %s", (_, before, next) => {
    const refused = refusal(() => isNewEnd("del_1", before, next));
    expect(refused).toMatchObject({
      reason: ErrorReason.DELEGATION_STATE_CONFLICT,
      metadata: { delegation: "del_1", from: before.state, to: next.state },
    });
  });
});

describe("the authority of the last delegatee", () => {
  const link = (n: number, more: Partial<RecordedLink> = {}): RecordedLink => ({
    ...{ revocationId: `block-${n}`, from: `p${n}`, to: `p${n + 1}`, state: "active", expireTime: 1000 },
    ...more,
  });
  const never = () => false;

  it("lasts until the earliest expiry in the chain", () => {
    const chain = [link(0), link(1, { expireTime: 500 }), link(2)];
    expect(lapsedAuthority(chain, never, 500)).toBeUndefined();
    expect(lapsedAuthority(chain, never, 501)).toEqual({ type: "expired" });
  });

  it.each([0, 1, 2])("ends with a revoked block at level %i", (level) => {
    const chain = [link(0), link(1), link(2)].map((one, n) =>
      n === level ? { ...one, state: "revoked" as const } : one,
    );
    expect(lapsedAuthority(chain, never, 0)).toEqual({ type: "revoked" });
    const isRevoked = (id: string) => id === `block-${level}`;
    expect(lapsedAuthority([link(0), link(1), link(2)], isRevoked, 0)).toEqual({ type: "revoked" });
  });

  it("checks each block with the signers up to it and its delegatee", () => {
    const askedContexts: unknown[] = [];
    lapsedAuthority([link(0), link(1)], (...question) => askedContexts.push(question) < 0, 0);
    expect(askedContexts).toEqual([
      ["block-0", ["p0", "p1"]],
      ["block-1", ["p0", "p1", "p2"]],
    ]);
  });
});
