import { DenialType } from "@depute/contracts/delegateos/v0/delegation_pb";
import { RevocationScope } from "@depute/contracts/delegateos/v0/revocation_pb";
import { fromTimestamp } from "@depute/core";
import { createRevocation, generateKeypair, type Keypair } from "@depute/dct";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { fromEntry } from "../rules/documents.ts";
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
  revocation,
  verify,
} from "../testing/holders.ts";
import { type Platform, startPlatform } from "../testing/platform.ts";
import { refusal } from "../testing/refusal.ts";

const UNKNOWN_BLOCK = "A".repeat(43);

let platform: Platform;
beforeEach(async () => {
  platform = await startPlatform();
});
afterEach(() => platform.stop());

/** The platform to alice to bob to carol. */
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
  ])("takes the word of %s, for every token with the block and no other", async (_, revoker) => {
    const { first, second, third } = await chain();
    const entry = revocation(platform, second.revocationId, revoker);
    const { revocation: logged, pending } = await platform.revocations.revokeToken({ entry });
    expect(pending).toBe(false);
    expect(logged).toMatchObject({ sequence: 1n, entry: { revokedBy: id(revoker) } });
    expect(await outcome(first.token, alice)).toBe("allowed");
    expect(await outcome(second.token, bob)).toBe(DenialType.REVOKED);
    expect(await outcome(third.token, carol)).toBe(DenialType.REVOKED);
  });

  it("takes the word of a signer above", async () => {
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
  ])("does not take that of %s", async (_, who) => {
    const { first, third } = await chain();
    const entry = revocation(platform, first.revocationId, who());
    for (const token of [undefined, given(third.token)]) {
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

  it("refuses an entry that its revoker has not signed as it is", async () => {
    const { first } = await chain();
    const entry = { ...revocation(platform, first.revocationId, mallory), revokedBy: id(alice) };
    const refused = await refusal(platform.revocations.revokeToken({ entry }));
    expect(refused).toMatchObject({ reason: "SIGNATURE_INVALID", fields: ["entry.signature"] });
    const widened = { ...revocation(platform, first.revocationId, alice), scope: RevocationScope.CHAIN };
    expect((await refusal(platform.revocations.revokeToken({ entry: widened }))).reason).toBe(
      "SIGNATURE_INVALID",
    );
  });

  it("refuses a chain that is none", async () => {
    const { first } = await chain();
    const entry = revocation(platform, UNKNOWN_BLOCK, alice);
    const send = (token: string) => {
      const sent = { token, format: "delegateos-sjt-v1" };
      return refusal(platform.revocations.revokeToken({ entry, token: sent }));
    };
    expect((await send("AAAA")).reason).toBe("TOKEN_MALFORMED");
    const forged = forgeLink(given(first.token).token, mallory, bob, {});
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

  it("is ordered by what the log says, whatever the revokers say of the time (R6)", async () => {
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
    // When it was recorded is the service's to say.
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

  it("lets no first writer stand in the way of another with a right of his own (R1)", async () => {
    const { second } = await chain();
    await platform.revocations.revokeToken({ entry: revocation(platform, second.revocationId, bob) });
    const entry = revocation(platform, second.revocationId, alice, "chain");
    expect((await platform.revocations.revokeToken({ entry })).revocation?.sequence).toBe(2n);
  });
});

describe("a bare entry for a block that is not known (R1)", () => {
  /** A link that its holder made without telling the service. */
  async function unrecorded() {
    const { first } = await chain();
    const token = forgeLink(given(first.token).token, alice, bob, {});
    const { blocks } = await platform.tokens.inspectToken({ token });
    return { token: { ...given(first.token), token: token.token }, block: given(blocks[1]).revocationId };
  }

  it("waits, and counts as soon as a chain proves the right; then the log has it", async () => {
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

  it("of a stranger waits for ever, and stands in nobody's way", async () => {
    const { token, block } = await unrecorded();
    const stranger = revocation(platform, block, mallory);
    expect((await platform.revocations.revokeToken({ entry: stranger })).pending).toBe(true);
    expect(await outcome(token, bob)).toBe("allowed");
    await platform.tokens.recordToken({ token });
    expect(await outcome(token, bob)).toBe("allowed");
    await platform.revocations.revokeToken({ entry: revocation(platform, block, alice) });
    expect(await outcome(token, bob)).toBe(DenialType.REVOKED);
  });

  it("is settled by the chain that is sent along later, with the scope that waited", async () => {
    const { token, block } = await unrecorded();
    await platform.revocations.revokeToken({ entry: revocation(platform, block, alice, "chain") });
    const again = { entry: revocation(platform, block, alice, "block"), token };
    // The answer is the wider of the two.
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

  it("is checked at once where the chain is sent along", async () => {
    const { token, block } = await unrecorded();
    const call = (revoker: typeof alice) =>
      platform.revocations.revokeToken({ entry: revocation(platform, block, revoker), token });
    expect((await refusal(call(mallory))).reason).toBe("NOT_AUTHORIZED_TO_REVOKE");
    expect((await call(bob)).revocation?.sequence).toBe(1n);
    expect(await outcome(token, bob)).toBe(DenialType.REVOKED);
  });

  it("may be proved by a chain that is over, since an ancestor may not be", async () => {
    const { first } = await chain();
    const end = new Date(platform.clock.now() + 1000).toISOString();
    const narrowed = await attenuate(platform, first.token, alice, bob, { expiresAt: end });
    platform.clock.advance(2000);
    const entry = revocation(platform, first.revocationId, alice);
    const { revocation: logged } = await platform.revocations.revokeToken({
      entry,
      token: given(narrowed.token),
    });
    expect(logged?.sequence).toBe(1n);
  });

  it("has room, whatever strangers fill, where a recorded block or a credential names its revoker", async () => {
    const small = await startPlatform(["--max-pending-revocations", "20"], [], [id(carol)]);
    try {
      const bare = (n: number, by: Keypair, options = {}) => {
        const block = Buffer.alloc(32, n).toString("base64url");
        return small.revocations.revokeToken({ entry: revocation(small, block, by) }, options);
      };
      let filled = 0;
      // Throwaway keys of one caller get a tenth of the pool, and those of many the whole.
      for (const caller of Array.from({ length: 12 }, () => generateKeypair(engine))) {
        for (let n = 0; n < 3; n++) {
          const hasRoom = n < 2 && filled < 20;
          const taken = await bare(
            filled,
            generateKeypair(engine),
            as(small, caller, "RevocationService/RevokeToken"),
          ).then(
            () => true,
            () => false,
          );
          if (taken) filled++;
          expect(taken).toBe(hasRoom);
        }
      }
      expect(filled).toBe(20);
      expect(await refusal(bare(100, mallory))).toMatchObject({ reason: "LIMIT_EXCEEDED" });
      await attenuate(small, (await mint(small)).token, alice, bob);
      for (const known of [alice, bob, carol]) {
        for (let n = 0; n < 30; n++) expect(await bare(100 + n, known)).toMatchObject({ pending: true });
      }
      // Strangers' entries go with the longest token life, and leave their room.
      small.clock.advance(24 * 3_600_000 + 30_001);
      expect(await bare(200, mallory)).toMatchObject({ pending: true });
    } finally {
      await small.stop();
    }
  });

  it("is refused once too many wait; a chain still helps", async () => {
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
      expect((await small.revocations.revokeToken({ entry, token: given(token) })).pending).toBe(false);
    } finally {
      await small.stop();
    }
  });
});

describe("RevokeMintedToken", () => {
  it("takes back what the platform signed, once", async () => {
    const { revocationId, token } = await mint(platform);
    const call = () => platform.revocations.revokeMintedToken({ revocationId, scope: RevocationScope.CHAIN });
    const { revocation: logged } = await call();
    platform.clock.advance(1000);
    expect((await call()).revocation).toEqual(logged);
    const { principal } = await platform.tokens.getIssuer({});
    expect(logged).toMatchObject({ sequence: 1n, entry: { revokedBy: principal } });
    expect(await outcome(token, alice)).toBe(DenialType.REVOKED);
  });

  it("knows no block that somebody else signed", async () => {
    const { second } = await chain();
    for (const revocationId of [second.revocationId, UNKNOWN_BLOCK]) {
      const call = platform.revocations.revokeMintedToken({ revocationId, scope: RevocationScope.BLOCK });
      expect(await refusal(call)).toMatchObject({
        reason: "TOKEN_NOT_FOUND",
        metadata: { revocation_id: revocationId },
      });
    }
  });

  it("is for those who may mint", async () => {
    const { revocationId, token } = await mint(platform);
    const call = platform.revocations.revokeMintedToken(
      { revocationId, scope: RevocationScope.BLOCK },
      as(platform, mallory, "RevocationService/RevokeMintedToken"),
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

  it("is read in order, from anywhere, without gaps", async () => {
    await revokeSome(5);
    const { revocations, lastSequence } = await platform.revocations.listRevocations({
      afterSequence: 1n,
      pageSize: 3,
    });
    expect(revocations.map(({ sequence }) => sequence)).toEqual([2n, 3n, 4n]);
    expect(lastSequence).toBe(5n);
    const rest = await platform.revocations.listRevocations({ afterSequence: 5n });
    expect(rest.revocations).toEqual([]);
  });

  it("is watched from a cursor by several at once: what is there, then what comes", async () => {
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

  it("ends its watchers when the process drains, and goes on from their cursor afterwards (R4)", async () => {
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
