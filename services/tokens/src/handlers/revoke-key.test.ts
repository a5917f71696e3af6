import { DelegationStatus, DenialType } from "@depute/contracts/delegateos/v0/delegation_pb";
import type { SerializedDCT } from "@depute/contracts/delegateos/v0/token_pb";
import { toTimestamp } from "@depute/core";
import type { Keypair } from "@depute/dct";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { type KeyStatement, signKeyRevocation } from "../rules/key-revocation.ts";
import { forgeLink } from "../testing/forge.ts";
import {
  alice,
  as,
  attenuate,
  bob,
  carol,
  engine,
  given,
  id,
  mallory,
  mint,
  verify,
} from "../testing/holders.ts";
import { type Platform, startPlatform } from "../testing/platform.ts";
import { refusal } from "../testing/refusal.ts";

const EPOCH = "1970-01-01T00:00:00.000Z";

let platform: Platform;
beforeEach(async () => {
  platform = await startPlatform();
});
afterEach(() => platform.stop());

async function chain() {
  const first = await mint(platform);
  const second = await attenuate(platform, first.token, alice, bob);
  const third = await attenuate(platform, second.token, bob, carol);
  return { first, second, third };
}

const outcome = async (token: SerializedDCT | undefined, holder: Keypair) => {
  const { result } = await verify(platform, token, holder);
  return result.case === "denial" ? result.value.type : "allowed";
};
const own = (key: Keypair, keepBefore = 0) =>
  signKeyRevocation(engine, { key: id(key), keepBefore, now: platform.clock.now() }, key);
const revoke = (revocation: KeyStatement) => platform.revocations.revokeKey({ revocation });
/** Waits for what is done behind the call: the log has this many places. */
async function logged(count: number) {
  for (let turn = 0; turn < 100; turn++) {
    const { revocations } = await platform.revocations.listRevocations({});
    if (revocations.length >= count) return revocations;
  }
  throw new Error(`the log does not get to ${count} places`);
}

describe("RevokeKey (R12)", () => {
  it("denies everything that the key signed, recorded here or not, and nothing that it did not", async () => {
    const { first, second, third } = await chain();
    const elsewhere = forgeLink(given(first.token).token, alice, carol, {});
    const { revocation } = await revoke(own(alice));
    expect(revocation).toMatchObject({ sequence: 1n, key: { key: id(alice), keepBefore: EPOCH } });
    expect(revocation?.entry).toBeUndefined();
    const outcomes = async () => [
      await outcome(first.token, alice),
      await outcome(second.token, bob),
      await outcome(third.token, carol),
      await outcome({ ...given(first.token), token: elsewhere.token }, carol),
    ];
    // The first block is the platform's and stays good; but nobody knows any more who holds it.
    const expected = [DenialType.INVALID_PROOF, DenialType.REVOKED, DenialType.REVOKED, DenialType.REVOKED];
    expect(await outcomes()).toEqual(expected);
    await platform.restart();
    expect(await outcomes()).toEqual(expected);
  });

  it("revokes the recorded blocks one by one, so that who follows the log stops the work", async () => {
    const { second, third } = await chain();
    await revoke(own(alice));
    const [, entry] = await logged(2);
    const { principal: revokedBy } = await platform.tokens.getIssuer({});
    expect(entry?.entry).toMatchObject({ revocationId: second.revocationId, revokedBy });
    for (const { delegationId } of [second, third]) {
      const { delegation } = await platform.delegations.getDelegation({ delegationId });
      expect(delegation?.status).toBe(DelegationStatus.REVOKED);
    }
  });

  it("keeps what was recorded before a time, and nothing that claims to be older", async () => {
    const { second } = await chain();
    platform.clock.advance(60_000);
    const stolen = platform.clock.now();
    const later = await attenuate(platform, (await mint(platform)).token, alice, carol);
    const backdated = forgeLink(given((await mint(platform)).token).token, alice, carol, {});
    await revoke(own(alice, stolen));
    expect(await outcome(second.token, bob)).toBe("allowed");
    expect(await outcome(later.token, carol)).toBe(DenialType.REVOKED);
    expect(await outcome({ ...given(later.token), token: backdated.token }, carol)).toBe(DenialType.REVOKED);
    await platform.restart();
    expect(await outcome(second.token, bob)).toBe("allowed");
    // A second statement may take more back, never less.
    await revoke(own(alice, 0));
    await revoke(own(alice, stolen));
    expect(await outcome(second.token, bob)).toBe(DenialType.REVOKED);
  });

  it("makes nothing of the key's proofs of who calls", async () => {
    await chain();
    const call = () => platform.tokens.getIssuer({}, as(platform, bob, "TokenService/GetIssuer"));
    await call();
    await revoke(own(bob));
    expect(await refusal(call())).toMatchObject({
      reason: "UNAUTHENTICATED",
      metadata: { denial: "invalid_proof", detail: "key revoked" },
    });
  });

  it("is written once", async () => {
    await chain();
    const { revocation } = await revoke(own(bob));
    platform.clock.advance(1000);
    expect((await revoke(own(bob))).revocation).toEqual(revocation);
  });

  it("is the key's own word", async () => {
    await chain();
    const statement = own(alice);
    expect((await refusal(revoke({ ...statement, revokedBy: id(mallory) }))).fields).toEqual([
      "revocation.revoked_by",
    ]);
    const forged = { ...own(mallory), key: id(alice), revokedBy: id(alice) };
    expect((await refusal(revoke(forged))).reason).toBe("SIGNATURE_INVALID");
    expect((await refusal(revoke({ ...statement, keepBefore: "2026-02-30T00:00:00Z" }))).fields).toEqual([
      "revocation.keep_before",
    ]);
    expect((await platform.revocations.listRevocations({})).lastSequence).toBe(0n);
  });

  it("is the platform's word for those who may mint", async () => {
    const { first, second } = await chain();
    const call = (who?: Keypair) =>
      platform.revocations.revokeKeyAsRoot(
        { key: id(alice), keepBefore: toTimestamp(0) },
        who && as(platform, who, "RevocationService/RevokeKeyAsRoot"),
      );
    expect((await refusal(call(mallory))).reason).toBe("CALLER_NOT_ALLOWED");
    await call();
    expect(await outcome(first.token, alice)).toBe(DenialType.INVALID_PROOF);
    expect(await outcome(second.token, bob)).toBe(DenialType.REVOKED);
    const noKey = platform.revocations.revokeKeyAsRoot({ key: "_".repeat(43) });
    expect((await refusal(noKey)).fields).toEqual(["key"]);
  });
});

describe("RevokeKey by a key that no recorded block names", () => {
  const LIFE_MS = 24 * 3_600_000 + 30_000;
  const lastSequence = async () => (await platform.revocations.listRevocations({})).lastSequence;
  /** A chain that bob narrowed for carol, and that nobody showed the service. */
  async function unseen() {
    const first = await mint(platform);
    const { token } = forgeLink(given(first.token).token, alice, bob, {});
    return { ...given(first.token), token: forgeLink(token, bob, carol, {}).token };
  }

  it("counts at once, for blocks and for proofs, across a restart too", async () => {
    const token = await unseen();
    expect(await outcome(token, carol)).toBe("allowed");
    expect(await revoke(own(bob))).toMatchObject({ pending: true });
    const call = () => platform.tokens.getIssuer({}, as(platform, bob, "TokenService/GetIssuer"));
    for (let round = 0; round < 2; round++) {
      expect(await outcome(token, carol)).toBe(DenialType.REVOKED);
      expect((await refusal(call())).metadata).toMatchObject({ detail: "key revoked" });
      expect(await revoke(own(bob))).toMatchObject({ pending: true });
      await platform.restart();
    }
    // Anybody can make keys, and the log keeps what it has.
    expect(await lastSequence()).toBe(0n);
  });

  it("is in the log when it is said again and a recorded block names the key", async () => {
    await revoke(own(bob));
    await attenuate(platform, (await mint(platform)).token, alice, bob);
    const { revocation, pending } = await revoke(own(bob));
    expect([revocation?.sequence, pending]).toEqual([1n, false]);
  });

  it("is forgotten with the longest token life", async () => {
    await revoke(own(bob));
    platform.clock.advance(LIFE_MS + 1);
    await platform.restart();
    expect(await outcome(await unseen(), carol)).toBe("allowed");
  });
});
