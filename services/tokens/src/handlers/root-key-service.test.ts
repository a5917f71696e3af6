import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DenialType } from "@depute/contracts/delegateos/v0/delegation_pb";
import { RevocationScope } from "@depute/contracts/delegateos/v0/revocation_pb";
import type { SerializedDCT } from "@depute/contracts/delegateos/v0/token_pb";
import { type RootKey, RootKeyState } from "@depute/contracts/depute/tokens/v1/root_key_service_pb";
import { fromTimestamp } from "@depute/core";
import { formatTime } from "@depute/dct";
import { isSignedRootSuccession } from "@depute/dct/transparency";
import { row, text } from "@depute/store";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { denialOf, isAllowed } from "../testing/decisions.ts";
import {
  alice,
  attenuate,
  bob,
  engine,
  id,
  mint,
  newRequest,
  requirePresent,
  verify,
} from "../testing/holders.ts";
import { type Platform, startPlatform } from "../testing/platform.ts";
import { refusal } from "../testing/refusal.ts";

const reasonOf = async (call: Promise<unknown>) => (await refusal(call)).reason;
const HOUR_MS = 3_600_000;
/** Shorter than the age at which the revocations are too old for a decision. */
const OVERLAP_MS = 100_000;
const { SIGNING, VERIFYING, RETIRED } = RootKeyState;

let platform: Platform;
beforeEach(async () => {
  platform = await startPlatform();
});
afterEach(() => platform.stop());

const rotate = (more: object = {}) => platform.rootKeys.rotateRootKey({ requestId: newRequest(), ...more });
const hours = (count: number) => ({ overlap: { seconds: BigInt(count * 3600) } });
const tokenOf = async (more: object = {}) =>
  requirePresent((await mint(platform, more)).token) as SerializedDCT;
const allowed = (token: SerializedDCT) => isAllowed(verify(platform, token, alice));
const issuerOf = (token: SerializedDCT) =>
  JSON.parse(Buffer.from(token.token, "base64url").toString()).authority.issuer as string;
const states = async () =>
  (await platform.rootKeys.listRootKeys({})).keys.map(({ principal, state }) => [principal, state]);

describe("a rotation", () => {
  it("signs with the new key at once, and accepts the old one until the overlap ends", async () => {
    const { principal: first } = await platform.tokens.getIssuer({});
    expect(await states()).toEqual([[first, SIGNING]]);
    const old = await tokenOf({ lifetime: { seconds: 7200n } });
    const now = platform.clock.now();
    const { key, replaced } = await rotate({ overlap: { seconds: 100n } });
    const second = requirePresent(key).principal;
    expect(replaced).toMatchObject({ principal: first, state: VERIFYING });
    expect(fromTimestamp(requirePresent(replaced?.retireTime))).toBe(now + OVERLAP_MS);
    expect(await platform.tokens.getIssuer({})).toMatchObject({
      principal: second,
      trustedRoots: [second, first],
      retiredRoots: [],
    });
    const fresh = await tokenOf({ lifetime: { seconds: 7200n } });
    expect(issuerOf(fresh)).toBe(second);
    expect([await allowed(old), await allowed(fresh)]).toEqual([true, true]);
    const below = await attenuate(platform, old, alice, bob);

    platform.clock.advance(OVERLAP_MS);
    expect(await denialOf(verify(platform, old, alice))).toMatchObject({
      type: DenialType.ROOT_RETIRED,
      detail: `authority.issuer: the root key retired at ${formatTime(now + OVERLAP_MS)}; get a token of the present root`,
    });
    expect(await denialOf(verify(platform, below.token, bob))).toMatchObject({
      type: DenialType.ROOT_RETIRED,
    });
    expect(await allowed(fresh)).toBe(true);
    expect(await states()).toEqual([
      [first, RETIRED],
      [second, SIGNING],
    ]);
    expect(await platform.tokens.getIssuer({})).toMatchObject({
      trustedRoots: [second],
      retiredRoots: [{ principal: first }],
    });
    await expect(
      platform.tokens.prepareAttenuation({ token: old, attenuation: { delegatee: id(bob) } }),
    ).rejects.toMatchObject({ message: expect.stringContaining("root_retired") });
  });

  it("has the greatest lifetime of a token as its overlap, and a setting in its place", async () => {
    const now = platform.clock.now();
    const { replaced } = await rotate();
    expect(fromTimestamp(requirePresent(replaced?.retireTime))).toBe(now + 24 * HOUR_MS);
    const other = await startPlatform(["--root-key-overlap", "2h"]);
    const { replaced: shorter } = await other.rootKeys.rotateRootKey({ requestId: "1" });
    expect(fromTimestamp(requirePresent(shorter?.retireTime))).toBe(other.clock.now() + 2 * HOUR_MS);
    await other.stop();
  });

  it("is idempotent by its request id, also after a restart", async () => {
    const request = { requestId: "once", ...hours(1) };
    const first = await rotate(request);
    await platform.restart();
    expect(await rotate(request)).toEqual(first);
    expect(await states()).toHaveLength(2);
    expect(await reasonOf(rotate({ ...request, ...hours(2) }))).toBe("REQUEST_ID_REUSED");
  });

  it("survives restarts, without its private key in clear", async () => {
    const { key } = await rotate();
    await platform.restart();
    const fresh = await tokenOf();
    expect(issuerOf(fresh)).toBe(requirePresent(key).principal);
    expect(readFileSync(join(platform.dataDir, "root.key"), "utf8")).toMatch(/^[A-Za-z0-9_-]{43}\n$/);
  });

  it("states its succession, signed by both keys", async () => {
    await rotate();
    await rotate();
    const { keys } = await platform.rootKeys.listRootKeys({});
    expect(keys[0]?.succession).toBeUndefined();
    for (const [before, key] of [keys.slice(0, 2), keys.slice(1)] as [RootKey, RootKey][]) {
      const { earlier, successor, createTime, ...signatures } = requirePresent(key.succession);
      expect([earlier, successor]).toEqual([before.principal, key.principal]);
      const encoded = (bytes: Uint8Array) => Buffer.from(bytes).toString("base64url");
      const createdAt = formatTime(fromTimestamp(requirePresent(createTime)));
      const statement = {
        ...{ from: earlier, to: successor, createdAt },
        ...{
          fromSignature: encoded(signatures.earlierSignature),
          toSignature: encoded(signatures.successorSignature),
        },
      };
      expect(isSignedRootSuccession(engine, statement)).toBe(true);
    }
  });

  it("lists pages", async () => {
    await rotate();
    const first = await platform.rootKeys.listRootKeys({ pageSize: 1 });
    const second = await platform.rootKeys.listRootKeys({ pageSize: 1, pageToken: first.nextPageToken });
    expect([first.keys.length, second.keys.length, second.nextPageToken]).toEqual([1, 1, ""]);
    expect(second.keys[0]?.state).toBe(SIGNING);
  });

  it("repeats a mint with the key that signed it, until that key retires", async () => {
    const requestId = newRequest();
    const minted = await mint(platform, { requestId });
    await rotate(hours(1));
    expect(await mint(platform, { requestId })).toEqual(minted);
    platform.clock.advance(HOUR_MS);
    expect(await reasonOf(mint(platform, { requestId }))).toBe("KEY_NOT_USABLE");
  });

  it("leaves the revocation of earlier tokens possible, and checkpoints to the new key", async () => {
    const { revocationId, token } = await mint(platform);
    const { key } = await rotate(hours(1));
    const scope = RevocationScope.CHAIN;
    const { revocation } = await platform.revocations.revokeMintedToken({ revocationId, scope });
    expect(revocation?.entry?.revokedBy).toBe(issuerOf(requirePresent(token)));
    expect(await denialOf(verify(platform, token, alice))).toMatchObject({ type: DenialType.REVOKED });
    const { checkpoint } = await platform.revocations.getRevocationCheckpoint({});
    expect(checkpoint?.signer).toBe(requirePresent(key).principal);
    await platform.restart();
    const other = await mint(platform);
    await rotate({ retireNow: true });
    expect(
      await reasonOf(platform.revocations.revokeMintedToken({ revocationId: other.revocationId, scope })),
    ).toBe("KEY_NOT_USABLE");
  });
});

describe("after a compromise", () => {
  it("a rotation retires all earlier keys at once, and erases them", async () => {
    const old = await tokenOf();
    const middle = requirePresent((await rotate()).key).principal;
    const { key, replaced } = await rotate({ retireNow: true });
    expect(replaced).toMatchObject({ principal: middle, state: RETIRED });
    expect(await denialOf(verify(platform, old, alice))).toMatchObject({ type: DenialType.ROOT_RETIRED });
    expect((await platform.tokens.getIssuer({})).trustedRoots).toEqual([requirePresent(key).principal]);
    const cells = await platform.whileDown(async () => {
      const store = await platform.openOwnStore();
      const secrets = await store.read((tx) =>
        tx.all(row({ principal: text }), "SELECT principal FROM root_key_secrets"),
      );
      await store.close();
      return secrets;
    });
    expect(cells).toEqual([{ principal: requirePresent(key).principal }]);
  });

  it("a clock that was set back does not revive a root that was retired at once", async () => {
    const old = await tokenOf();
    await rotate({ retireNow: true });
    platform.clock.advance(-1000);
    expect(await denialOf(verify(platform, old, alice))).toMatchObject({ type: DenialType.ROOT_RETIRED });
    await rotate();
    expect(await denialOf(verify(platform, old, alice))).toMatchObject({ type: DenialType.ROOT_RETIRED });
  });

  it("a chain of the retired root can no longer be recorded", async () => {
    const old = await tokenOf();
    const { token } = await attenuate(platform, old, alice, bob);
    await rotate({ retireNow: true });
    expect(await reasonOf(platform.tokens.recordToken({ token }))).toBe("TOKEN_DENIED");
  });

  it("a setting that names the retired root does not revive it", async () => {
    const folder = mkdtempSync(join(tmpdir(), "depute-root-"));
    const file = join(folder, "root");
    writeFileSync(file, Buffer.from(alice.privateKey).toString("base64url"), { mode: 0o600 });
    const other = await startPlatform(["--root-key-file", file, "--trusted-roots", id(alice)]);
    const { key } = await other.rootKeys.rotateRootKey({ requestId: "1", retireNow: true });
    expect((await other.tokens.getIssuer({})).trustedRoots).toEqual([key?.principal]);
    await other.stop();
    rmSync(folder, { recursive: true });
  });

  it("an overlap ends by command, once", async () => {
    const { principal } = await platform.tokens.getIssuer({});
    const old = await tokenOf();
    await rotate(hours(10));
    const { key } = await platform.rootKeys.retireRootKey({ principal });
    expect(key).toMatchObject({ principal, state: RETIRED });
    platform.clock.advance(1000);
    expect(await platform.rootKeys.retireRootKey({ principal })).toMatchObject({ key });
    expect(await denialOf(verify(platform, old, alice))).toMatchObject({ type: DenialType.ROOT_RETIRED });
  });

  it("refuses what cannot be retired, and contradictory rotations", async () => {
    const { principal } = await platform.tokens.getIssuer({});
    expect(await reasonOf(platform.rootKeys.retireRootKey({ principal }))).toBe("KEY_NOT_USABLE");
    expect(await reasonOf(platform.rootKeys.retireRootKey({ principal: id(bob) }))).toBe("KEY_NOT_FOUND");
    for (const request of [{ ...hours(1), retireNow: true }, { overlap: {} }, hours(91 * 24)]) {
      expect(await reasonOf(rotate(request))).toBe("INVALID_REQUEST");
    }
  });

  it("is in the audit log", async () => {
    const { principal } = await platform.tokens.getIssuer({});
    const { key } = await rotate(hours(1));
    await platform.rootKeys.retireRootKey({ principal });
    const decisions = (await platform.audit()).filter(({ kind }) => kind.endsWith("_root"));
    expect(decisions).toMatchObject([
      { kind: "rotate_root", principal, decision: "allowed", reason: requirePresent(key).principal },
      { kind: "retire_root", principal, decision: "allowed" },
    ]);
  });
});
