import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { durationFromMs } from "@bufbuild/protobuf/wkt";
import { DenialType } from "@depute/contracts/delegateos/v0/delegation_pb";
import { RevocationScope } from "@depute/contracts/delegateos/v0/revocation_pb";
import type { SerializedDCT } from "@depute/contracts/delegateos/v0/token_pb";
import { KeyState } from "@depute/contracts/depute/tokens/v1/key_service_pb";
import { encodeBase64Url } from "@depute/core";
import type { Keypair } from "@depute/dct";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import {
  alice,
  bob,
  CALL,
  CONTRACT,
  id,
  mint,
  newRequest,
  READ,
  readFile,
  requirePresent,
  verify,
  withProof,
} from "../testing/holders.ts";
import { type Platform, startPlatform } from "../testing/platform.ts";
import { refusal } from "../testing/refusal.ts";

const DAY_MS = 24 * 3_600_000;

let platform: Platform;
beforeEach(async () => {
  platform = await startPlatform();
});
afterEach(() => platform.stop());

const by = (caller: Keypair, method: string) => withProof(platform, caller, `KeyService/${method}`);
const createKey = async (agentId = "") =>
  requirePresent((await platform.keys.createKey({ requestId: newRequest(), agentId })).key);

/** Presents a token with a proof by a kept key. */
async function presentToken(keyId: string, token: SerializedDCT | undefined) {
  const { token: text } = requirePresent(token);
  const { proof } = await platform.keys.proveWithKey({
    keyId,
    method: CALL.htm,
    target: CALL.htu,
    token: text,
  });
  const presented = { jwt: proof, method: CALL.htm, target: CALL.htu };
  const { result, principal } = await platform.tokens.verifyToken({
    ...{ token: requirePresent(token), proof: presented, requested: readFile() },
  });
  return result.case === "scope" ? principal : result.value?.type;
}

describe("a kept key", () => {
  it("is created once for a request, belongs to its owner only, and survives a restart", async () => {
    const request = { requestId: newRequest(), agentId: "researcher" };
    const { key } = await platform.keys.createKey(request);
    expect(key).toMatchObject({
      agentId: "researcher",
      owner: "local",
      state: KeyState.ACTIVE,
      successorId: "",
    });
    await platform.restart();
    expect((await platform.keys.createKey(request)).key).toEqual(key);
    const other = platform.keys.createKey({ ...request, agentId: "other" });
    expect((await refusal(other)).reason).toBe("REQUEST_ID_REUSED");
    const keyId = requirePresent(key).id;
    const refused = await Promise.all(
      [
        platform.keys.getKey({ keyId }, by(alice, "GetKey")),
        platform.keys.rotateKey({ keyId }, by(alice, "RotateKey")),
        platform.keys.revokeKeptKey({ keyId }, by(alice, "RevokeKeptKey")),
        platform.keys.proveWithKey(
          { keyId, method: "POST", target: "https://a.example" },
          by(alice, "ProveWithKey"),
        ),
        platform.keys.getKey({ keyId: "019a0000-0000-7000-8000-000000000000" }),
      ].map(refusal),
    );
    expect(new Set(refused.map(({ reason }) => reason))).toEqual(new Set(["KEY_NOT_FOUND"]));
    expect((await platform.keys.listKeys({}, by(alice, "ListKeys"))).keys).toEqual([]);
  });

  it("is listed in pages", async () => {
    const createdKeys = [await createKey(), await createKey(), await createKey()];
    const first = await platform.keys.listKeys({ pageSize: 2 });
    const second = await platform.keys.listKeys({ pageSize: 2, pageToken: first.nextPageToken });
    expect([...first.keys, ...second.keys]).toEqual(createdKeys);
    expect(second.nextPageToken).toBe("");
  });

  it("proves, attenuates and revokes for its owner", async () => {
    const { id: keyId, principal } = await createKey();
    const { token } = await mint(platform, { delegatee: principal });
    expect(await presentToken(keyId, token)).toBe(principal);
    const request = {
      keyId,
      token: requirePresent(token),
      attenuation: { delegatee: id(bob), maxBudgetMicrocents: 5n },
    };
    const { attenuated } = await platform.keys.attenuateWithKey(request);
    // A repeated request creates an identical block, even if it arrives later.
    platform.clock.advance(1000);
    expect((await platform.keys.attenuateWithKey(request)).attenuated).toEqual(attenuated);
    const { revocationId } = requirePresent(attenuated);
    expect((await verify(platform, attenuated?.token, bob)).result.case).toBe("scope");
    const { revocation, pending } = await platform.keys.revokeWithKey({
      ...{ keyId, revocationId, scope: RevocationScope.CHAIN },
    });
    expect(pending).toBe(false);
    expect(revocation?.entry).toMatchObject({ revokedBy: principal, revocationId });
    expect((await verify(platform, attenuated?.token, bob)).result.value).toMatchObject({
      type: DenialType.REVOKED,
    });
  });

  it("attenuates only its own tokens", async () => {
    const { id: keyId } = await createKey();
    const { token } = await mint(platform);
    const call = (attenuation: object) =>
      refusal(
        platform.keys.attenuateWithKey({
          keyId,
          token: requirePresent(token),
          attenuation: { delegatee: id(bob), ...attenuation },
        }),
      );
    expect((await call({})).reason).toBe("ATTENUATION_VIOLATION");
    expect((await call({ attenuator: id(alice) })).fields).toEqual(["attenuation.attenuator"]);
  });

  it("mints only as a trusted root", async () => {
    const { id: keyId } = await createKey();
    const request = {
      ...{ requestId: newRequest(), delegatee: id(alice), capabilities: [READ], contractId: CONTRACT },
      ...{ maxChainDepth: 1, maxBudgetMicrocents: 10n },
    };
    expect((await refusal(platform.keys.mintWithKey({ keyId, mint: request }))).reason).toBe(
      "CALLER_NOT_ALLOWED",
    );
  });

  it("never leaves the service, in answers or readable in the store", async () => {
    await createKey();
    const [master] = await platform.whileDown(async () => [
      readFileSync(join(platform.dataDir, "master.key"), "utf8"),
    ]);
    expect(requirePresent(master).trim()).toHaveLength(43);
    await platform.whileDown(async () => {
      writeFileSync(join(platform.dataDir, "master.key"), encodeBase64Url(new Uint8Array(32).fill(9)), {
        mode: 0o600,
      });
      await expect(platform.start()).rejects.toThrow("created with another master key");
      writeFileSync(join(platform.dataDir, "master.key"), requirePresent(master));
    });
  });
});

describe("a rotated key", () => {
  it("has one successor, mints no more, and proves its tokens for a day (13.3)", async () => {
    const old = await createKey("researcher");
    const { token } = await mint(platform, {
      delegatee: old.principal,
      lifetime: durationFromMs(86_400_000),
    });
    const { replaced, key } = await platform.keys.rotateKey({ keyId: old.id });
    expect(replaced).toMatchObject({
      id: old.id,
      state: KeyState.REPLACED,
      successorId: requirePresent(key).id,
    });
    expect(key).toMatchObject({ agentId: "researcher", owner: "local", state: KeyState.ACTIVE });
    expect(requirePresent(key).principal).not.toBe(old.principal);
    platform.clock.advance(1000);
    expect(await platform.keys.rotateKey({ keyId: old.id })).toMatchObject({ replaced, key });
    expect(await presentToken(old.id, token)).toBe(old.principal);
    platform.clock.advance(DAY_MS);
    const { key: retired } = await platform.keys.getKey({ keyId: old.id });
    expect(retired?.state).toBe(KeyState.RETIRED);
    const prove = platform.keys.proveWithKey({ keyId: old.id, method: "POST", target: "https://a.example" });
    expect(await refusal(prove)).toMatchObject({
      reason: "KEY_NOT_USABLE",
      metadata: { key: old.id, state: "retired" },
    });
  });
});

describe("a compromised kept key (13.3)", () => {
  it("signs nothing more, and its signatures become invalid", async () => {
    const { id: keyId, principal } = await createKey();
    const { token } = await mint(platform, { delegatee: principal });
    const attenuation = { delegatee: id(bob) };
    const { attenuated } = await platform.keys.attenuateWithKey({
      keyId,
      token: requirePresent(token),
      attenuation,
    });
    const { key, revocation } = await platform.keys.revokeKeptKey({ keyId });
    expect(key?.state).toBe(KeyState.REVOKED);
    expect(revocation?.key).toMatchObject({ key: principal, revokedBy: principal });
    expect((await platform.keys.revokeKeptKey({ keyId })).revocation).toEqual(revocation);
    expect((await verify(platform, attenuated?.token, bob)).result.value).toMatchObject({
      type: DenialType.REVOKED,
    });
    const refused = await Promise.all(
      [
        platform.keys.attenuateWithKey({ keyId, token: requirePresent(token), attenuation }),
        platform.keys.proveWithKey({ keyId, method: "POST", target: "https://a.example" }),
        platform.keys.rotateKey({ keyId }),
      ].map(refusal),
    );
    expect(new Set(refused.map(({ reason }) => reason))).toEqual(new Set(["KEY_NOT_USABLE"]));
  });

  it("without tokens has nothing to revoke", async () => {
    const { id: keyId } = await createKey();
    const { key, revocation } = await platform.keys.revokeKeptKey({ keyId });
    expect(key?.state).toBe(KeyState.REVOKED);
    expect(revocation).toBeUndefined();
  });
});
