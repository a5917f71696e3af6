import { DelegationStatus, DenialType } from "@depute/contracts/delegateos/v0/delegation_pb";
import type { SerializedDCT } from "@depute/contracts/delegateos/v0/token_pb";
import { toTimestamp } from "@depute/core";
import type { Keypair } from "@depute/dct";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { type KeyStatement, signKeyRevocation } from "../rules/key-revocation.ts";
import { forgeLink } from "../testing/forge.ts";
import {
  alice,
  attenuate,
  bob,
  carol,
  engine,
  id,
  mallory,
  mint,
  requirePresent,
  verify,
  withProof,
} from "../testing/holders.ts";
import { type Platform, startPlatform } from "../testing/platform.ts";
import { refusal } from "../testing/refusal.ts";
import { toKeyRevocation } from "./revocation-service.ts";

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
const ownRevocation = (key: Keypair, keepBefore = 0) =>
  signKeyRevocation(engine, { key: id(key), keepBefore, now: platform.clock.now() }, key);
const revoke = (revocation: KeyStatement) =>
  platform.revocations.revokeKey({ revocation: toKeyRevocation(revocation) });
/** Waits until the log has this many entries. The background work writes them. */
async function logged(count: number) {
  for (let turn = 0; turn < 100; turn++) {
    const { revocations } = await platform.revocations.listRevocations({});
    if (revocations.length >= count) return revocations;
  }
  throw new Error(`the log does not get to ${count} places`);
}

describe("RevokeKey (R12)", () => {
  it("denies everything that the key signed, recorded or not, and nothing else", async () => {
    const { first, second, third } = await chain();
    const elsewhere = forgeLink(requirePresent(first.token).token, alice, carol, {});
    const { revocation } = await revoke(ownRevocation(alice));
    expect(revocation).toMatchObject({ sequence: 1n, key: { key: id(alice), keepBefore: toTimestamp(0) } });
    expect(revocation?.entry).toBeUndefined();
    const outcomes = async () => [
      await outcome(first.token, alice),
      await outcome(second.token, bob),
      await outcome(third.token, carol),
      await outcome({ ...requirePresent(first.token), token: elsewhere.token }, carol),
    ];
    // The first block is signed by the platform and stays valid. But its holder's key is revoked, so the service denies
    // the holder's proof.
    const expected = [DenialType.INVALID_PROOF, DenialType.REVOKED, DenialType.REVOKED, DenialType.REVOKED];
    expect(await outcomes()).toEqual(expected);
    await platform.restart();
    expect(await outcomes()).toEqual(expected);
  });

  it("revokes the recorded blocks one by one for followers of the log", async () => {
    const { second, third } = await chain();
    await revoke(ownRevocation(alice));
    const [, entry] = await logged(2);
    const { principal: revokedBy } = await platform.tokens.getIssuer({});
    expect(entry?.entry).toMatchObject({ revocationId: second.revocationId, revokedBy });
    for (const { delegationId } of [second, third]) {
      const { delegation } = await platform.delegations.getDelegation({ delegationId });
      expect(delegation?.status).toBe(DelegationStatus.REVOKED);
    }
  });

  it("keeps blocks recorded before a time, regardless of their claimed times", async () => {
    const { second } = await chain();
    platform.clock.advance(60_000);
    const stolen = platform.clock.now();
    const later = await attenuate(platform, (await mint(platform)).token, alice, carol);
    const backdated = forgeLink(requirePresent((await mint(platform)).token).token, alice, carol, {});
    await revoke(ownRevocation(alice, stolen));
    expect(await outcome(second.token, bob)).toBe("allowed");
    expect(await outcome(later.token, carol)).toBe(DenialType.REVOKED);
    expect(await outcome({ ...requirePresent(later.token), token: backdated.token }, carol)).toBe(
      DenialType.REVOKED,
    );
    await platform.restart();
    expect(await outcome(second.token, bob)).toBe("allowed");
    // A second revocation of the key may revoke more blocks, but never fewer.
    await revoke(ownRevocation(alice, 0));
    await revoke(ownRevocation(alice, stolen));
    expect(await outcome(second.token, bob)).toBe(DenialType.REVOKED);
  });

  it("denies the key's identity proofs", async () => {
    await chain();
    const call = () => platform.tokens.getIssuer({}, withProof(platform, bob, "TokenService/GetIssuer"));
    await call();
    await revoke(ownRevocation(bob));
    expect(await refusal(call())).toMatchObject({
      reason: "UNAUTHENTICATED",
      metadata: { denial: "invalid_proof", detail: "key revoked" },
    });
  });

  it("is logged once", async () => {
    await chain();
    const { revocation } = await revoke(ownRevocation(bob));
    platform.clock.advance(1000);
    expect((await revoke(ownRevocation(bob))).revocation).toEqual(revocation);
  });

  it("accepts a statement of the key itself", async () => {
    await chain();
    const statement = ownRevocation(alice);
    expect((await refusal(revoke({ ...statement, revokedBy: id(mallory) }))).fields).toEqual([
      "revocation.revoked_by",
    ]);
    const forged = { ...ownRevocation(mallory), key: id(alice), revokedBy: id(alice) };
    expect((await refusal(revoke(forged))).reason).toBe("SIGNATURE_INVALID");
    const { keepBefore: _, ...timeless } = toKeyRevocation(statement);
    const call = platform.revocations.revokeKey({ revocation: timeless });
    expect((await refusal(call)).fields).toEqual(["revocation.keep_before"]);
    expect((await platform.revocations.listRevocations({})).lastSequence).toBe(0n);
  });

  it("accepts the platform's statement for minters", async () => {
    const { first, second } = await chain();
    const call = (caller?: Keypair) =>
      platform.revocations.revokeKeyAsRoot(
        { key: id(alice), keepBefore: toTimestamp(0) },
        caller && withProof(platform, caller, "RevocationService/RevokeKeyAsRoot"),
      );
    expect((await refusal(call(mallory))).reason).toBe("CALLER_NOT_ALLOWED");
    await call();
    expect(await outcome(first.token, alice)).toBe(DenialType.INVALID_PROOF);
    expect(await outcome(second.token, bob)).toBe(DenialType.REVOKED);
    const noKey = platform.revocations.revokeKeyAsRoot({ key: "_".repeat(43) });
    expect((await refusal(noKey)).fields).toEqual(["key"]);
  });
});

describe("RevokeKey for a key without recorded blocks", () => {
  const LIFE_MS = 24 * 3_600_000 + 30_000;
  const lastSequence = async () => (await platform.revocations.listRevocations({})).lastSequence;
  /** Creates a chain from bob to carol that the service has not recorded. */
  async function unseen() {
    const first = await mint(platform);
    const { token } = forgeLink(requirePresent(first.token).token, alice, bob, {});
    return { ...requirePresent(first.token), token: forgeLink(token, bob, carol, {}).token };
  }

  it("takes effect at once for blocks and proofs, also across a restart", async () => {
    const token = await unseen();
    expect(await outcome(token, carol)).toBe("allowed");
    expect(await revoke(ownRevocation(bob))).toMatchObject({ pending: true });
    const call = () => platform.tokens.getIssuer({}, withProof(platform, bob, "TokenService/GetIssuer"));
    for (let round = 0; round < 2; round++) {
      expect(await outcome(token, carol)).toBe(DenialType.REVOKED);
      expect((await refusal(call())).metadata).toMatchObject({ detail: "key revoked" });
      expect(await revoke(ownRevocation(bob))).toMatchObject({ pending: true });
      await platform.restart();
    }
    // Any party can generate keys, and the log is permanent. So the service does not log the revocation of an unknown
    // key.
    expect(await lastSequence()).toBe(0n);
  });

  it("is logged on repetition once a recorded block names the key", async () => {
    await revoke(ownRevocation(bob));
    await attenuate(platform, (await mint(platform)).token, alice, bob);
    const { revocation, pending } = await revoke(ownRevocation(bob));
    expect([revocation?.sequence, pending]).toEqual([1n, false]);
  });

  it("expires with the longest token lifetime", async () => {
    await revoke(ownRevocation(bob));
    platform.clock.advance(LIFE_MS + 1);
    await platform.restart();
    expect(await outcome(await unseen(), carol)).toBe("allowed");
  });
});
