import { mkdirSync, readFileSync, rmdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { DenialType } from "@depute/contracts/delegateos/v0/delegation_pb";
import { RevocationScope } from "@depute/contracts/delegateos/v0/revocation_pb";
import { encodeBase64Url, formatTime, fromTimestamp } from "@depute/core";
import { isSignedCheckpoint } from "@depute/dct/transparency";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { alice, engine, mint, requirePresent, revocation, verify } from "../testing/holders.ts";
import { type Platform, startPlatform } from "../testing/platform.ts";
import { refusal } from "../testing/refusal.ts";

let platform: Platform;
beforeEach(async () => {
  platform = await startPlatform();
});
afterEach(() => platform.stop());

async function revokeOne() {
  const { revocationId, token } = await mint(platform);
  const { revocation } = await platform.revocations.revokeMintedToken({
    revocationId,
    scope: RevocationScope.BLOCK,
  });
  return { token, revocation: requirePresent(revocation) };
}

describe("the checkpoint", () => {
  it("is signed by the platform's root, with the log's length", async () => {
    const { principal } = await platform.tokens.getIssuer({});
    const empty = requirePresent((await platform.revocations.getRevocationCheckpoint({})).checkpoint);
    expect(empty).toMatchObject({ sequence: 0n, head: "", signer: principal });
    await revokeOne();
    const { revocation: last } = await revokeOne();
    const checkpoint = requirePresent((await platform.revocations.getRevocationCheckpoint({})).checkpoint);
    const { head, signer, signTime, signature } = checkpoint;
    const signedAt = formatTime(fromTimestamp(requirePresent(signTime)));
    expect(checkpoint).toMatchObject({ sequence: 2n, head: last.head });
    expect(
      isSignedCheckpoint(
        engine,
        { sequence: 2, head, signer, signedAt, signature: encodeBase64Url(signature) },
        principal,
      ),
    ).toBe(true);
  });

  it("is on disk before a revocation is acknowledged, also when many share a write", async () => {
    const onDisk = () =>
      JSON.parse(readFileSync(join(platform.dataDir, "revocations.checkpoint"), "utf8")).sequence as number;
    for (let sequence = 1; sequence <= 3; sequence++) {
      await revokeOne();
      expect(onDisk()).toBe(sequence);
    }
    const ids = await Promise.all(
      Array.from({ length: 20 }, async () => (await mint(platform)).revocationId),
    );
    await Promise.all(
      ids.map(async (revocationId) => {
        const entry = revocation(platform, revocationId, alice);
        const { revocation: logged } = await platform.revocations.revokeToken({ entry });
        expect(onDisk()).toBeGreaterThanOrEqual(Number(logged?.sequence));
        // A replay gets the same acknowledgement.
        await platform.revocations.revokeToken({ entry });
      }),
    );
    expect(onDisk()).toBe(23);
  });

  it("prevents the acknowledgement if it cannot be written, while the block is revoked", async () => {
    const { revocationId, token } = await mint(platform);
    const entry = revocation(platform, revocationId, alice);
    const blocked = join(platform.dataDir, "revocations.checkpoint.new");
    mkdirSync(blocked);
    expect((await refusal(platform.revocations.revokeToken({ entry }))).reason).toBe(
      "DEPENDENCY_UNAVAILABLE",
    );
    expect((await verify(platform, token, alice)).result).toMatchObject({
      value: { type: DenialType.REVOKED },
    });
    expect((await refusal(platform.revocations.revokeToken({ entry }))).reason).toBe(
      "DEPENDENCY_UNAVAILABLE",
    );
    rmdirSync(blocked);
    expect((await platform.revocations.revokeToken({ entry })).revocation?.sequence).toBe(1n);
  });

  it("prevents a start on an older copy of the store (R3)", async () => {
    await revokeOne();
    const { token } = await revokeOne();
    await platform.whileDown(async () => {
      const store = await platform.openOwnStore();
      await store.write((tx) => tx.run("DELETE FROM revocations WHERE sequence > 1"));
      await store.close();
      await expect(platform.start()).rejects.toThrow("does not continue entry 2");
      // An operator may delete the checkpoint file if it accepts the loss of revocations. The service then starts.
      rmSync(join(platform.dataDir, "revocations.checkpoint"));
    });
    expect((await verify(platform, token, alice)).result.case).toBe("scope");
  });

  it("is ignored without the platform's signature", async () => {
    await revokeOne();
    await platform.whileDown(async () => {
      const file = join(platform.dataDir, "revocations.checkpoint");
      const checkpoint = JSON.parse(readFileSync(file, "utf8"));
      writeFileSync(file, JSON.stringify({ ...checkpoint, sequence: 99 }));
    });
    expect(platform.logged.join("\n")).toContain("not signed by the platform's root");
  });
});

describe("a demanded sequence (R5)", () => {
  it("causes one read of the log, and then a stale denial", async () => {
    const { token } = await mint(platform);
    await revokeOne();
    const at = async (minRevocationSequence: bigint) => {
      const { result, revocationSequence } = await verify(platform, token, alice, { minRevocationSequence });
      expect(revocationSequence).toBe(1n);
      return result.case === "denial" ? result.value.type : "allowed";
    };
    expect(await at(1n)).toBe("allowed");
    expect(await at(2n)).toBe(DenialType.REVOCATION_STATE_STALE);
    expect((await refusal(at(-1n))).fields).toEqual(["min_revocation_sequence"]);
  });
});

describe("the log's quotas (R7)", () => {
  it("limit each revoker a day", async () => {
    const small = await startPlatform(["--max-daily-revocations", "2"]);
    try {
      const revoke = async () => {
        const { revocationId } = await mint(small);
        return small.revocations.revokeToken({ entry: revocation(small, revocationId, alice) });
      };
      await revoke();
      await revoke();
      expect(await refusal(revoke())).toMatchObject({
        reason: "LIMIT_EXCEEDED",
        metadata: { limit: "daily_revocations", max: "2" },
      });
      const { revocationId } = await mint(small);
      for (const scope of [RevocationScope.BLOCK, RevocationScope.CHAIN]) {
        await small.revocations.revokeMintedToken({ revocationId, scope });
      }
      small.clock.advance(24 * 3_600_000 + 1);
      await revoke();
    } finally {
      await small.stop();
    }
  });

  it("stores ids and signatures, and no content of tokens (R13)", async () => {
    const { revocationId } = await mint(platform);
    await platform.revocations.revokeToken({ entry: revocation(platform, revocationId, alice) });
    const { revocations } = await platform.revocations.listRevocations({});
    expect(Object.keys(requirePresent(revocations[0]?.entry)).sort()).toEqual([
      ...["$typeName", "revocationId", "revokedAt", "revokedBy", "scope", "signature"],
    ]);
  });
});
