import { DenialType } from "@depute/contracts/delegateos/v0/delegation_pb";
import { RevocationScope } from "@depute/contracts/delegateos/v0/revocation_pb";
import { fromTimestamp } from "@depute/core";
import { createRevocation, generateKeypair, type Keypair } from "@depute/dct";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { fromEntry } from "../rules/documents.ts";
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
  revocation,
  verify,
  withProof,
} from "../testing/holders.ts";
import { type Platform, startPlatform } from "../testing/platform.ts";
import { refusal } from "../testing/refusal.ts";

const UNKNOWN_BLOCK = "A".repeat(43);

let platform: Platform;
beforeEach(async () => {
  platform = await startPlatform();
});
afterEach(() => platform.stop());

/** Creates a chain from the platform through alice and bob to carol. */
async function chain() {
  const first = await mint(platform);
  const second = await attenuate(platform, first.token, alice, bob);
  const third = await attenuate(platform, second.token, bob, carol);
  return { first, second, third };
}

const outcome = async (token: Parameters<typeof verify>[1], holder: typeof alice) => {
  const { result } = await verify(platform, token, holder);
  return result.case === "denial" ? result.value.type : "allowed";
};

describe("RevokeToken", () => {
  it.each([
    ["its signer", alice],
    ["its delegatee", bob],
  ])("accepts the request of %s, for every token with the block and no other", async (_, revoker) => {
    const { first, second, third } = await chain();
    const entry = revocation(platform, second.revocationId, revoker);
    const { revocation: logged, pending } = await platform.revocations.revokeToken({ entry });
    expect(pending).toBe(false);
    expect(logged).toMatchObject({ sequence: 1n, entry: { revokedBy: id(revoker) } });
    expect(await outcome(first.token, alice)).toBe("allowed");
    expect(await outcome(second.token, bob)).toBe(DenialType.REVOKED);
    expect(await outcome(third.token, carol)).toBe(DenialType.REVOKED);
  });

  it("accepts an entry of a signer above", async () => {
    const { second, third } = await chain();
    const entry = revocation(platform, third.revocationId, alice, "chain");
    await platform.revocations.revokeToken({ entry });
    expect(await outcome(second.token, bob)).toBe("allowed");
    expect(await outcome(third.token, carol)).toBe(DenialType.REVOKED);
  });

  it.each([
    ["a stranger", () => mallory],
    ["a delegatee below", () => carol],
    ["the signer of a block below", () => bob],
  ])("refuses the request of %s", async (_, who) => {
    const { first, third } = await chain();
    const entry = revocation(platform, first.revocationId, who());
    for (const token of [undefined, requirePresent(third.token)]) {
      const call = platform.revocations.revokeToken({ entry, ...(token && { token }) });
      expect((await refusal(call)).reason).toBe("NOT_AUTHORIZED_TO_REVOKE");
    }
    expect(await outcome(third.token, carol)).toBe("allowed");
    expect(await platform.audit()).toContainEqual(
      expect.objectContaining({
        kind: "revoke",
        principal: id(who()),
        decision: "denied",
        reason: "not_authorized_to_revoke",
        blocks: [first.revocationId],
      }),
    );
  });

  it("refuses an entry without a valid signature of its revoker", async () => {
    const { first } = await chain();
    const entry = { ...revocation(platform, first.revocationId, mallory), revokedBy: id(alice) };
    const refused = await refusal(platform.revocations.revokeToken({ entry }));
    expect(refused).toMatchObject({ reason: "SIGNATURE_INVALID", fields: ["entry.signature"] });
    const widened = { ...revocation(platform, first.revocationId, alice), scope: RevocationScope.CHAIN };
    expect((await refusal(platform.revocations.revokeToken({ entry: widened }))).reason).toBe(
      "SIGNATURE_INVALID",
    );
  });

  it("refuses an invalid chain", async () => {
    const { first } = await chain();
    const entry = revocation(platform, UNKNOWN_BLOCK, alice);
    const send = (token: string) => {
      const sent = { token, format: "delegateos-sjt-v1" };
      return refusal(platform.revocations.revokeToken({ entry, token: sent }));
    };
    expect((await send("AAAA")).reason).toBe("TOKEN_MALFORMED");
    const forged = forgeLink(requirePresent(first.token).token, mallory, bob, {});
    expect(await send(forged.token)).toMatchObject({
      reason: "TOKEN_DENIED",
      metadata: { denial: "attenuation_violation" },
    });
  });

  it("gives the same sequence for the same entry, and a new one for a wider scope, which stays (R2)", async () => {
    const { first } = await chain();
    const block = revocation(platform, first.revocationId, alice, "block");
    const { revocation: once } = await platform.revocations.revokeToken({ entry: block });
    platform.clock.advance(5000);
    expect((await platform.revocations.revokeToken({ entry: block })).revocation).toEqual(once);
    const later = revocation(platform, first.revocationId, alice, "block");
    expect((await platform.revocations.revokeToken({ entry: later })).revocation).toEqual(once);

    const wider = revocation(platform, first.revocationId, alice, "chain");
    const { revocation: twice } = await platform.revocations.revokeToken({ entry: wider });
    expect(twice).toMatchObject({ sequence: 2n, entry: { scope: RevocationScope.CHAIN } });
    await platform.restart();
    expect((await platform.revocations.revokeToken({ entry: wider })).revocation).toEqual(twice);
    expect((await platform.revocations.listRevocations({})).lastSequence).toBe(2n);
  });

  it("is ordered by the log, regardless of the revokers' times (R6)", async () => {
    const sequences: (bigint | undefined)[] = [];
    for (const revokedAt of [
      "9999-12-31T23:59:59.999Z",
      "1970-01-01T00:00:00.000Z",
      "2026-01-01T00:00:00.000Z",
    ]) {
      const { revocationId } = await mint(platform);
      const at = Date.parse(revokedAt);
      const entry = fromEntry(createRevocation(engine, revocationId, "block", alice, at));
      sequences.push((await platform.revocations.revokeToken({ entry })).revocation?.sequence);
    }
    expect(sequences).toEqual([1n, 2n, 3n]);
    const { revocations } = await platform.revocations.listRevocations({ afterSequence: 1n });
    expect(revocations.map(({ sequence }) => sequence)).toEqual([2n, 3n]);
    // The service sets the time of the log entry.
    const times = revocations.map(({ recordTime }) => recordTime && fromTimestamp(recordTime));
    expect(new Set(times)).toEqual(new Set([platform.clock.now()]));
  });

  it("does not log a narrower scope after a wider one", async () => {
    const { first } = await chain();
    const wider = revocation(platform, first.revocationId, alice, "chain");
    const { revocation: logged } = await platform.revocations.revokeToken({ entry: wider });
    const narrower = revocation(platform, first.revocationId, alice, "block");
    expect((await platform.revocations.revokeToken({ entry: narrower })).revocation).toEqual(logged);
  });

  it("accepts entries of several rightful revokers (R1)", async () => {
    const { second } = await chain();
    await platform.revocations.revokeToken({ entry: revocation(platform, second.revocationId, bob) });
    const entry = revocation(platform, second.revocationId, alice, "chain");
    expect((await platform.revocations.revokeToken({ entry })).revocation?.sequence).toBe(2n);
  });
});

describe("an entry without a chain for an unknown block (R1)", () => {
  /** Creates a block that the service has not recorded. */
  async function unrecorded() {
    const { first } = await chain();
    const token = forgeLink(requirePresent(first.token).token, alice, bob, {});
    const { blocks } = await platform.tokens.inspectToken({ token });
    return {
      token: { ...requirePresent(first.token), token: token.token },
      block: requirePresent(blocks[1]).revocationId,
    };
  }

  it("waits, and is logged and in force once a chain proves the right", async () => {
    const { token, block } = await unrecorded();
    const entry = revocation(platform, block, alice);
    expect(await platform.revocations.revokeToken({ entry })).toMatchObject({ pending: true });
    expect((await platform.revocations.listRevocations({})).revocations).toEqual([]);
    await platform.restart();
    expect(await outcome(token, bob)).toBe(DenialType.REVOKED);
    const { revocations } = await platform.revocations.listRevocations({});
    expect(revocations).toMatchObject([
      { sequence: 1n, entry: { revocationId: block, revokedBy: id(alice) } },
    ]);
    await platform.restart();
    expect(await outcome(token, bob)).toBe(DenialType.REVOKED);
    expect((await platform.revocations.listRevocations({})).revocations).toHaveLength(1);
  });

  it("of a stranger waits without effect", async () => {
    const { token, block } = await unrecorded();
    const stranger = revocation(platform, block, mallory);
    expect((await platform.revocations.revokeToken({ entry: stranger })).pending).toBe(true);
    expect(await outcome(token, bob)).toBe("allowed");
    await platform.tokens.recordToken({ token });
    expect(await outcome(token, bob)).toBe("allowed");
    await platform.revocations.revokeToken({ entry: revocation(platform, block, alice) });
    expect(await outcome(token, bob)).toBe(DenialType.REVOKED);
  });

  it("is logged by a later request with the chain, with the waiting scope", async () => {
    const { token, block } = await unrecorded();
    await platform.revocations.revokeToken({ entry: revocation(platform, block, alice, "chain") });
    const again = { entry: revocation(platform, block, alice, "block"), token };
    // The response contains the wider of the two scopes.
    const { revocation: answered } = await platform.revocations.revokeToken(again);
    expect(answered?.entry?.scope).toBe(RevocationScope.CHAIN);
    expect((await platform.revocations.revokeToken(again)).revocation).toEqual(answered);
    const { revocations } = await platform.revocations.listRevocations({});
    expect(revocations.map(({ entry }) => entry?.scope).sort()).toEqual([
      RevocationScope.BLOCK,
      RevocationScope.CHAIN,
    ]);
    expect(await outcome(token, bob)).toBe(DenialType.REVOKED);
  });

  it("is checked at once if the request contains the chain", async () => {
    const { token, block } = await unrecorded();
    const call = (revoker: typeof alice) =>
      platform.revocations.revokeToken({ entry: revocation(platform, block, revoker), token });
    expect((await refusal(call(mallory))).reason).toBe("NOT_AUTHORIZED_TO_REVOKE");
    expect((await call(bob)).revocation?.sequence).toBe(1n);
    expect(await outcome(token, bob)).toBe(DenialType.REVOKED);
  });

  it("may be proven by an expired chain, because an ancestor may be valid", async () => {
    const { first } = await chain();
    const end = new Date(platform.clock.now() + 1000).toISOString();
    const narrowed = await attenuate(platform, first.token, alice, bob, { expiresAt: end });
    platform.clock.advance(2000);
    const entry = revocation(platform, first.revocationId, alice);
    const { revocation: logged } = await platform.revocations.revokeToken({
      entry,
      token: requirePresent(narrowed.token),
    });
    expect(logged?.sequence).toBe(1n);
  });

  it("has its own space for known revokers, also when strangers fill the pool", async () => {
    const small = await startPlatform(["--max-pending-revocations", "20"], [], [id(carol)]);
    try {
      const bare = (n: number, by: Keypair, options = {}) => {
        const block = Buffer.alloc(32, n).toString("base64url");
        return small.revocations.revokeToken({ entry: revocation(small, block, by) }, options);
      };
      let filled = 0;
      // One caller may use a tenth of the pool for entries of unknown keys. Many callers together fill the pool.
      for (const caller of Array.from({ length: 12 }, () => generateKeypair(engine))) {
        for (let n = 0; n < 3; n++) {
          const hasRoom = n < 2 && filled < 20;
          const takenBlock = await bare(
            filled,
            generateKeypair(engine),
            withProof(small, caller, "RevocationService/RevokeToken"),
          ).then(
            () => true,
            () => false,
          );
          if (takenBlock) filled++;
          expect(takenBlock).toBe(hasRoom);
        }
      }
      expect(filled).toBe(20);
      expect(await refusal(bare(100, mallory))).toMatchObject({ reason: "LIMIT_EXCEEDED" });
      await attenuate(small, (await mint(small)).token, alice, bob);
      for (const keypair of [alice, bob, carol]) {
        for (let n = 0; n < 30; n++) expect(await bare(100 + n, keypair)).toMatchObject({ pending: true });
      }
      // Entries of unknown keys expire after the longest token lifetime, and free their space in the pool.
      small.clock.advance(24 * 3_600_000 + 30_001);
      expect(await bare(200, mallory)).toMatchObject({ pending: true });
    } finally {
      await small.stop();
    }
  });

  it("is refused when the pool is full, except with a chain", async () => {
    const small = await startPlatform(["--max-pending-revocations", "1"]);
    try {
      const bare = (n: string) => small.revocations.revokeToken({ entry: revocation(small, n, mallory) });
      expect((await bare(UNKNOWN_BLOCK)).pending).toBe(true);
      expect((await bare(UNKNOWN_BLOCK)).pending).toBe(true);
      const refused = await refusal(bare(`${"A".repeat(42)}E`));
      expect(refused).toMatchObject({
        reason: "LIMIT_EXCEEDED",
        metadata: { limit: "pending_revocations", max: "1" },
      });
      const { token, revocationId } = await mint(small);
      const entry = revocation(small, revocationId, alice);
      expect((await small.revocations.revokeToken({ entry, token: requirePresent(token) })).pending).toBe(
        false,
      );
    } finally {
      await small.stop();
    }
  });
});

describe("RevokeMintedToken", () => {
  it("revokes a block of the platform, once", async () => {
    const { revocationId, token } = await mint(platform);
    const call = () => platform.revocations.revokeMintedToken({ revocationId, scope: RevocationScope.CHAIN });
    const { revocation: logged } = await call();
    platform.clock.advance(1000);
    expect((await call()).revocation).toEqual(logged);
    const { principal } = await platform.tokens.getIssuer({});
    expect(logged).toMatchObject({ sequence: 1n, entry: { revokedBy: principal } });
    expect(await outcome(token, alice)).toBe(DenialType.REVOKED);
  });

  it("does not find blocks of other signers", async () => {
    const { second } = await chain();
    for (const revocationId of [second.revocationId, UNKNOWN_BLOCK]) {
      const call = platform.revocations.revokeMintedToken({ revocationId, scope: RevocationScope.BLOCK });
      expect(await refusal(call)).toMatchObject({
        reason: "TOKEN_NOT_FOUND",
        metadata: { revocation_id: revocationId },
      });
    }
  });

  it("is limited to minters", async () => {
    const { revocationId, token } = await mint(platform);
    const call = platform.revocations.revokeMintedToken(
      { revocationId, scope: RevocationScope.BLOCK },
      withProof(platform, mallory, "RevocationService/RevokeMintedToken"),
    );
    expect((await refusal(call)).reason).toBe("CALLER_NOT_ALLOWED");
    expect(await outcome(token, alice)).toBe("allowed");
  });
});

describe("the log", () => {
  const revokeSome = async (count: number) => {
    for (let n = 0; n < count; n++) {
      const { revocationId } = await mint(platform);
      await platform.revocations.revokeMintedToken({ revocationId, scope: RevocationScope.BLOCK });
    }
  };

  it("is read in order, from any sequence, without gaps", async () => {
    await revokeSome(5);
    const { revocations, lastSequence } = await platform.revocations.listRevocations({
      afterSequence: 1n,
      pageSize: 3,
    });
    expect(revocations.map(({ sequence }) => sequence)).toEqual([2n, 3n, 4n]);
    expect(lastSequence).toBe(5n);
    const restPage = await platform.revocations.listRevocations({ afterSequence: 5n });
    expect(restPage.revocations).toEqual([]);
  });

  it("serves several watches from a cursor: existing entries, then new ones", async () => {
    await revokeSome(3);
    const watch = (afterSequence: bigint) =>
      platform.revocations.watchRevocations({ afterSequence })[Symbol.asyncIterator]();
    const watchers = [watch(0n), watch(2n)];
    const next = async (watcher: (typeof watchers)[number]) =>
      (await watcher.next()).value?.revocation?.sequence;
    const [all, late] = watchers as [(typeof watchers)[number], (typeof watchers)[number]];
    expect([await next(all), await next(all), await next(all), await next(late)]).toEqual([1n, 2n, 3n, 3n]);
    const coming = [next(all), next(late)];
    await revokeSome(1);
    expect(await Promise.all(coming)).toEqual([4n, 4n]);
    await Promise.all(watchers.map((watcher) => watcher.return?.(undefined)));
  });

  it("ends its watches on drain, and continues from their cursor afterwards (R4)", async () => {
    await revokeSome(1);
    const watcher = platform.revocations.watchRevocations({})[Symbol.asyncIterator]();
    expect((await watcher.next()).value?.revocation?.sequence).toBe(1n);
    const end = refusal(watcher.next());
    await platform.restart();
    expect((await end).reason).toMatch(/SHUTTING_DOWN|DEPENDENCY_UNAVAILABLE/);
    await revokeSome(1);
    const again = platform.revocations.watchRevocations({ afterSequence: 1n })[Symbol.asyncIterator]();
    expect((await again.next()).value?.revocation?.sequence).toBe(2n);
    await again.return?.(undefined);
  });
});
