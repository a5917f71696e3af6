import { create } from "@bufbuild/protobuf";
import { AttestationSchema } from "@depute/contracts/delegateos/v0/attestation_pb";
import { DelegationStatus } from "@depute/contracts/delegateos/v0/delegation_pb";
import { SerializedDCTSchema } from "@depute/contracts/delegateos/v0/token_pb";
import { type Attestation, createToken, type Keypair, serialiseToken, signObject } from "@depute/dct";
import { decode } from "@depute/wire";
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
  otherRoot,
  READ,
  requirePresent,
  revocation,
  withProof,
} from "../testing/holders.ts";
import { type Platform, startPlatform } from "../testing/platform.ts";
import { refusal } from "../testing/refusal.ts";

const { ACTIVE, COMPLETED, FAILED, REVOKED } = DelegationStatus;

let platform: Platform;
beforeEach(async () => {
  platform = await startPlatform(["--trusted-roots", id(otherRoot)]);
});
afterEach(() => platform.stop());

/** Creates two chains: from the platform through alice and bob to carol, and from alice to carol. */
async function tree() {
  const first = await mint(platform);
  const second = await attenuate(platform, first.token, alice, bob);
  const third = await attenuate(platform, second.token, bob, carol);
  const aside = await attenuate(platform, first.token, alice, carol);
  return { first, second, third, aside };
}

const by = (holder: Keypair, method: string) => withProof(platform, holder, `DelegationService/${method}`);
const statusOf = async ({ delegationId }: { delegationId: string }) =>
  (await platform.delegations.getDelegation({ delegationId })).delegation?.status;

function attestation(delegationId: string, by: Keypair, more: Partial<Attestation> = {}) {
  const body: Omit<Attestation, "signature"> = {
    ...{ id: "att_0123456789ab", version: "0.1", type: "completion", contractId: CONTRACT, delegationId },
    ...{ principal: id(by), createdAt: "2026-01-01T00:00:00Z", childAttestations: [] },
    result: { success: true, costMicrocents: 5, durationMs: 10 },
    ...more,
  };
  const decoded = decode(AttestationSchema, signObject(engine, "attestation", body, by));
  if (!decoded.ok) throw decoded.error;
  return decoded.message;
}

describe("the chain store", () => {
  it("keeps minted and attenuated chains across a restart", async () => {
    const { first, second, third } = await tree();
    await platform.restart();
    const { delegations } = await platform.delegations.getDelegationChain({
      delegationId: third.delegationId,
    });
    const { principal: issuer } = await platform.tokens.getIssuer({});
    expect(delegations).toMatchObject([
      {
        id: first.delegationId,
        parentId: "del_000000000000",
        delegator: issuer,
        delegatee: id(alice),
        depth: 0,
      },
      {
        id: second.delegationId,
        parentId: first.delegationId,
        delegator: id(alice),
        delegatee: id(bob),
        depth: 1,
      },
      {
        id: third.delegationId,
        parentId: second.delegationId,
        delegator: id(bob),
        delegatee: id(carol),
        contractId: CONTRACT,
        depth: 2,
        status: ACTIVE,
        revocationId: third.revocationId,
        rootRevocationId: first.revocationId,
        attestationId: "",
      },
    ]);
    expect(delegations[2]?.endTime).toBeUndefined();
  });

  it("refuses a token that violates the chain's invariants, and stores nothing of it (8.2)", async () => {
    const params = {
      ...{ delegatee: id(alice), capabilities: [READ], contractId: CONTRACT, maxBudgetMicrocents: 1 },
      ...{ maxChainDepth: 3, chainDepth: 1, parentDelegationId: "del_0123456789ab" },
    };
    const token = createToken(engine, params, otherRoot, { now: platform.clock.now() });
    const sent = create(SerializedDCTSchema, serialiseToken(token));
    expect(await refusal(platform.tokens.recordToken({ token: sent }))).toMatchObject({
      reason: "DELEGATION_INVALID",
      metadata: { detail: "block 0: parentId: not that of a root" },
    });
    expect((await platform.delegations.listDelegations({})).delegations).toEqual([]);
  });

  it("is readable only at or above a delegation", async () => {
    const { second } = await tree();
    const { delegationId } = second;
    for (const caller of [alice, bob]) {
      const { delegation } = await platform.delegations.getDelegation(
        { delegationId },
        by(caller, "GetDelegation"),
      );
      expect(delegation?.id).toBe(delegationId);
    }
    const unknown = platform.delegations.getDelegation({ delegationId: "del_ffffffffffff" });
    const expected = await refusal(unknown);
    expect(expected).toMatchObject({
      reason: "DELEGATION_NOT_FOUND",
      metadata: { delegation: "del_ffffffffffff" },
    });
    for (const stranger of [mallory, carol]) {
      const call = platform.delegations.getDelegation({ delegationId }, by(stranger, "GetDelegation"));
      expect((await refusal(call)).reason).toBe(expected.reason);
    }
  });

  it("finds a delegation despite others with its id (C8)", async () => {
    const { second } = await tree();
    const { delegationId } = second;
    const params = {
      ...{ delegatee: id(mallory), capabilities: [READ], contractId: CONTRACT, maxBudgetMicrocents: 1 },
      ...{ maxChainDepth: 0, delegationId },
    };
    const squat = createToken(engine, params, otherRoot, { now: platform.clock.now() });
    await platform.tokens.recordToken({ token: create(SerializedDCTSchema, serialiseToken(squat)) });
    const ownDelegation = await platform.delegations.getDelegation(
      { delegationId },
      by(bob, "GetDelegation"),
    );
    expect(ownDelegation.delegation?.delegatee).toBe(id(bob));
    const refused = await refusal(platform.delegations.getDelegation({ delegationId }));
    expect(refused.reason).toBe("DELEGATION_AMBIGUOUS");
    expect(refused.metadata.candidates?.split(",")).toContain(second.revocationId);
    const { revocationId } = second;
    const namedDelegation = await platform.delegations.getDelegation({ delegationId, revocationId });
    expect(namedDelegation.delegation?.delegatee).toBe(id(bob));
  });
});

describe("ListDelegations", () => {
  const list = async (request: object, caller?: Keypair) => {
    const foundIds: string[] = [];
    let pageToken = "";
    do {
      const page = await platform.delegations.listDelegations(
        { ...request, pageSize: 2, pageToken },
        caller && by(caller, "ListDelegations"),
      );
      expect(page.delegations.length).toBeLessThanOrEqual(2);
      foundIds.push(...page.delegations.map((delegation) => delegation.id));
      pageToken = page.nextPageToken;
    } while (pageToken !== "");
    return foundIds;
  };

  it("lists in pages by principal, contract and status", async () => {
    const { first, second, third, aside } = await tree();
    const other = await mint(platform, { contractId: "ct_000000000001", delegatee: id(bob) });
    const [a, b, c, d, e] = [first, second, third, aside, other].map(({ delegationId }) => delegationId);
    expect(await list({})).toEqual([a, b, c, d, e]);
    expect(await list({ principal: id(bob) })).toEqual([b, c, e]);
    expect(await list({ contractId: CONTRACT })).toEqual([a, b, c, d]);
    expect(await list({ principal: id(bob), contractId: "ct_000000000001" })).toEqual([e]);
    await platform.delegations.finishDelegation({
      delegationId: requirePresent(c),
      outcome: { case: "result", value: { status: FAILED } },
    });
    expect(await list({ status: FAILED })).toEqual([c]);
    expect(await list({ principal: id(carol), status: ACTIVE })).toEqual([d]);
    expect(await list({}, bob)).toEqual([b, c, e]);
    expect(await list({}, mallory)).toEqual([]);
    expect((await refusal(list({ principal: id(alice) }, bob))).reason).toBe("CALLER_NOT_ALLOWED");
    const pageToken = (await platform.delegations.listDelegations({ pageSize: 1 })).nextPageToken;
    const elsewhere = platform.delegations.listDelegations({ status: FAILED, pageToken });
    expect((await refusal(elsewhere)).reason).toBe("PAGE_TOKEN_INVALID");
  });
});

describe("a delegation's status", () => {
  it("is completed by the delegatee's attestation, once", async () => {
    const { second } = await tree();
    const { delegationId } = second;
    const outcome = { case: "attestation" as const, value: attestation(delegationId, bob) };
    const finish = (who = alice, validateOnly = false) =>
      platform.delegations.finishDelegation(
        { delegationId, outcome, validateOnly },
        by(who, "FinishDelegation"),
      );
    // FinishDelegation refuses delegatees. A delegatee submits an attestation to the verifier service, which
    // compares the attestation with the contract.
    for (const caller of [bob, mallory]) {
      expect(await refusal(finish(caller))).toMatchObject({ reason: "CALLER_NOT_ALLOWED" });
    }
    expect((await finish(alice, true)).delegation).toMatchObject({ status: ACTIVE, attestationId: "" });
    const { delegation } = await finish();
    expect(delegation).toMatchObject({ status: COMPLETED, attestationId: "att_0123456789ab" });
    platform.clock.advance(1000);
    expect((await finish()).delegation).toEqual(delegation);
    expect((await finish(alice, true)).delegation).toEqual(delegation);
    const result = { case: "result" as const, value: { status: FAILED } };
    for (const validateOnly of [true, false]) {
      expect(
        await refusal(platform.delegations.finishDelegation({ delegationId, outcome: result, validateOnly })),
      ).toMatchObject({
        reason: "DELEGATION_STATE_CONFLICT",
        metadata: { delegation: delegationId, from: "completed", to: "failed" },
      });
    }
  });

  it("is not completed by an attestation after the authority ended", async () => {
    const send = ({ delegationId }: { delegationId: string }) => {
      const outcome = { case: "attestation" as const, value: attestation(delegationId, bob) };
      return refusal(platform.delegations.finishDelegation({ delegationId, outcome }));
    };
    const ownTree = await tree();
    await platform.revocations.revokeToken({
      entry: revocation(platform, ownTree.second.revocationId, alice, "block"),
    });
    expect(await send(ownTree.second)).toMatchObject({
      reason: "TOKEN_DENIED",
      metadata: { denial: "revoked" },
    });
    const above = await tree();
    await platform.revocations.revokeToken({
      entry: revocation(platform, above.first.revocationId, alice, "block"),
    });
    expect(await statusOf(above.second)).toBe(ACTIVE);
    expect(await send(above.second)).toMatchObject({ metadata: { denial: "revoked" } });
    const late = await tree();
    platform.clock.advance(3_600_001);
    expect(await send(late.second)).toMatchObject({ metadata: { denial: "expired" } });
    expect(await statusOf(late.second)).toBe(ACTIVE);
  });

  it("is not changed by an unauthorized report", async () => {
    const { second } = await tree();
    const { delegationId } = second;
    const send = (value: ReturnType<typeof attestation>) =>
      refusal(
        platform.delegations.finishDelegation({ delegationId, outcome: { case: "attestation", value } }),
      );
    const ownAttestation = attestation(delegationId, bob);
    expect((await send({ ...ownAttestation, principal: id(mallory) })).reason).toBe("SIGNATURE_INVALID");
    expect((await send(attestation(delegationId, mallory))).reason).toBe("DELEGATION_NOT_FOUND");
    const elsewhere = attestation(delegationId, bob, { contractId: "ct_000000000001" });
    expect(await send(elsewhere)).toMatchObject({
      reason: "TOKEN_DENIED",
      metadata: { denial: "contract_mismatch" },
    });
    expect((await send(attestation("del_ffffffffffff", bob))).fields).toEqual(["attestation.delegation_id"]);
    const judgedAttestation = attestation(delegationId, bob, { type: "delegation_verification" });
    expect((await send(judgedAttestation)).fields).toEqual(["attestation.type"]);
    const outcome = { case: "result" as const, value: { status: COMPLETED } };
    for (const caller of [bob, carol, mallory]) {
      const call = platform.delegations.finishDelegation(
        { delegationId, outcome },
        by(caller, "FinishDelegation"),
      );
      expect((await refusal(call)).reason).toBe("DELEGATION_NOT_FOUND");
    }
    expect(await statusOf(second)).toBe(ACTIVE);
    await platform.delegations.finishDelegation({ delegationId, outcome }, by(alice, "FinishDelegation"));
    expect(await statusOf(second)).toBe(COMPLETED);
  });

  it("follows revocations: the scope block ends that delegation, the scope chain also those below (R9)", async () => {
    const { first, second, third, aside } = await tree();
    const all = () => Promise.all([first, second, third, aside].map(statusOf));
    await platform.revocations.revokeToken({
      entry: revocation(platform, second.revocationId, alice, "block"),
    });
    expect(await all()).toEqual([ACTIVE, REVOKED, ACTIVE, ACTIVE]);
    await platform.revocations.revokeToken({
      entry: revocation(platform, second.revocationId, alice, "chain"),
    });
    expect(await all()).toEqual([ACTIVE, REVOKED, REVOKED, ACTIVE]);
  });

  it("keeps an end from before the revocation", async () => {
    const { first, second, third } = await tree();
    const outcome = { case: "result" as const, value: { status: COMPLETED } };
    await platform.delegations.finishDelegation({ delegationId: second.delegationId, outcome });
    await platform.revocations.revokeToken({
      entry: revocation(platform, first.revocationId, alice, "chain"),
    });
    expect(await Promise.all([first, second, third].map(statusOf))).toEqual([REVOKED, COMPLETED, REVOKED]);
  });
});
