import { decodeBase64Url } from "@depute/core";
import * as ed from "@noble/ed25519";
import { blake2b } from "blakejs";
import canonicalize from "canonicalize";
import { describe, expect, test } from "vitest";
import {
  attachAttenuationSignature,
  attenuateToken,
  attenuationSigningInput,
  buildAttenuation,
} from "./attenuate.ts";
import { attachAuthoritySignature, authoritySigningInput, buildAuthority, createToken } from "./create.ts";
import { createSjtEngine } from "./dct-engine.ts";
import { TokenError } from "./denial.ts";
import { portableEngine } from "./engine/portable.ts";
import { revocationId, revocationIds } from "./payload.ts";
import { parseToken, serialiseToken } from "./serialise.ts";
import {
  alice,
  bob,
  CONTRACT,
  carol,
  context,
  delegation,
  engine,
  id,
  NOW,
  params,
  root,
  rootToken,
} from "./testing/fixtures.ts";
import { verifyToken } from "./verify.ts";

const denialOf = (run: () => unknown) => {
  try {
    run();
  } catch (error) {
    if (error instanceof TokenError) return error.denial;
    throw error;
  }
  return undefined;
};

describe("create (DelegateOS 3.3)", () => {
  test("makes a root token with its defaults", () => {
    const { authority, attenuations, signatures, format } = rootToken();
    expect({ format, attenuations }).toEqual({ format: "delegateos-sjt-v1", attenuations: [] });
    expect(authority).toEqual({
      ...params,
      issuer: id(root),
      parentDelegationId: "del_000000000000",
      chainDepth: 0,
      issuedAt: "2026-02-17T12:00:00.000Z",
      expiresAt: "2026-02-17T13:00:00.000Z",
    });
    expect(signatures).toEqual([{ signer: id(root), signature: expect.any(String), covers: "authority" }]);
  });

  test.each<[string, object, object]>([
    ["an unregistered namespace", { capabilities: [cap("nope", "read", "*")] }, { type: "malformed_token" }],
    [
      "an action outside its namespace",
      { capabilities: [cap("web", "delete", "*")] },
      { type: "malformed_token" },
    ],
    ["C7 * as namespace", { capabilities: [cap("*", "read", "*")] }, { type: "malformed_token" }],
    [
      "G2 a pattern with dots",
      { capabilities: [cap("docs", "read", "/a/../b")] },
      { type: "invalid_resource" },
    ],
    ["J4 a negative budget", { maxBudgetMicrocents: -1 }, { type: "malformed_token" }],
    ["J4 a budget in fractions", { maxBudgetMicrocents: 0.5 }, { type: "malformed_token" }],
    ["J4 NaN", { maxBudgetMicrocents: Number.NaN }, { type: "malformed_token" }],
    ["J7 an undefined member", { maxChainDepth: undefined }, { type: "malformed_token" }],
    ["C4 a life over 24 hours", { expiresAt: "2026-02-19T12:00:00Z" }, { type: "malformed_token" }],
    ["C4 an end before the start", { expiresAt: "2026-02-17T11:00:00Z" }, { type: "malformed_token" }],
    ["C4 an offset", { issuedAt: "2026-02-17T12:00:00+00:00" }, { type: "malformed_token" }],
    ["a foreign contract id", { contractId: "contract-1" }, { type: "malformed_token" }],
    ["the reserved delegation id", { delegationId: "del_000000000000" }, { type: "malformed_token" }],
    ["depth without a parent", { chainDepth: 1 }, { type: "malformed_token" }],
    ["a parent without depth", { parentDelegationId: delegation(9) }, { type: "malformed_token" }],
    [
      "C2 depth over its own limit",
      { chainDepth: 4, parentDelegationId: delegation(9) },
      { type: "chain_depth_exceeded", max: 3, actual: 4 },
    ],
    [
      "J6 65 capabilities",
      { capabilities: Array(65).fill(params.capabilities[0]) },
      { type: "token_too_large" },
    ],
    [
      "J6 a long resource",
      { capabilities: [cap("docs", "read", "x".repeat(1025))] },
      { type: "token_too_large" },
    ],
    ["K3 a delegatee of small order", { delegatee: "A".repeat(43) }, { type: "malformed_token" }],
  ])("refuses %s", (_, more, denial) => {
    expect(denialOf(() => rootToken(more))).toMatchObject(denial);
  });

  test("has a split form: build, sign elsewhere, attach", () => {
    const authority = buildAuthority(id(root), params, { now: NOW });
    const digest = authoritySigningInput(engine, authority);
    expect(digest).toHaveLength(32);
    const token = attachAuthoritySignature(engine, authority, portableEngine.sign(digest, root.privateKey));
    expect(token).toEqual(rootToken());
    const byOther = engine.sign(digest, alice.privateKey);
    expect(denialOf(() => attachAuthoritySignature(engine, authority, byOther))?.type).toBe(
      "invalid_signature",
    );
  });

  test("refuses the key of another principal", () => {
    const wrong = { principal: root.principal, privateKey: alice.privateKey };
    expect(denialOf(() => createToken(engine, params, wrong, { now: NOW }))?.type).toBe("invalid_signature");
  });
});

describe("attenuate (DelegateOS 3.4)", () => {
  const next = { delegatee: id(bob), delegationId: delegation(2) };

  test("adds a block and a signature, and does not change the parent token", () => {
    const parent = rootToken();
    const before = JSON.stringify(parent);
    const child = attenuateToken(engine, parent, { ...next, maxBudgetMicrocents: 10 }, alice);
    expect(child.attenuations).toEqual([
      { ...next, attenuator: id(alice), contractId: CONTRACT, maxBudgetMicrocents: 10 },
    ]);
    expect(child.signatures.map(({ signer, covers }) => [signer, covers])).toEqual([
      [id(root), "authority"],
      [id(alice), 0],
    ]);
    expect(JSON.stringify(parent)).toBe(before);
    expect(attenuateToken(engine, child, { delegatee: id(carol) }, bob).attenuations).toHaveLength(2);
  });

  test.each<[string, object, object]>([
    [
      "a capability that the parent lacks",
      { allowedCapabilities: [cap("docs", "write", "/project/**")] },
      violation,
    ],
    ["G1 a sibling folder", { allowedCapabilities: [cap("docs", "read", "/project-secret")] }, violation],
    ["a wider pattern", { allowedCapabilities: [cap("docs", "read", "/**")] }, violation],
    ["a larger budget", { maxBudgetMicrocents: 1001 }, violation],
    ["a later end", { expiresAt: "2026-02-17T13:00:00.001Z" }, violation],
    ["C2 as much depth as before", { maxChainDepth: 3 }, violation],
    ["C3 another contract", { contractId: "ct_000000000001" }, { type: "contract_mismatch" }],
    ["C5 null in place of a list", { allowedCapabilities: null }, { type: "malformed_token" }],
    ["C5 null in place of a number", { maxBudgetMicrocents: null }, { type: "malformed_token" }],
    ["C6 a delegation id of the chain", { delegationId: delegation(1) }, { type: "malformed_token" }],
  ])("refuses %s", (_, more, denial) => {
    expect(denialOf(() => attenuateToken(engine, rootToken(), { ...next, ...more }, alice))).toMatchObject(
      denial,
    );
  });

  test("is allowed for the delegatee alone", () => {
    expect(denialOf(() => attenuateToken(engine, rootToken(), next, bob))).toMatchObject(violation);
  });

  test.each(["/docs/**", "/caf\u00e9/**"])("a token for %s is attenuated and verified", (resource) => {
    const capabilities = [{ namespace: "docs", action: "read", resource }];
    const parent = rootToken({ capabilities });
    const child = attenuateToken(engine, parent, { ...next, allowedCapabilities: capabilities }, alice);
    expect(parseToken(serialiseToken(child))).toEqual({ ok: true, token: child });
    const request = { namespace: "docs", action: "read", resource: resource.replace("**", "a.txt") };
    expect(verifyToken(engine, serialiseToken(child), context({ request }))).toMatchObject({ ok: true });
  });

  test("refuses a private key that is not the delegatee's", () => {
    const wrong = { ...alice, privateKey: bob.privateKey };
    expect(denialOf(() => attenuateToken(engine, rootToken(), next, wrong))).toEqual({
      type: "invalid_signature",
      detail: "attenuations[0]",
    });
  });

  test("allows a recorded sub-contract", () => {
    const subContract = (child: string, parent: string) => child === "ct_000000000001" && parent === CONTRACT;
    const child = attenuateToken(engine, rootToken(), { ...next, contractId: "ct_000000000001" }, alice, {
      subContract,
    });
    expect(verifyToken(engine, serialiseToken(child), context({ subContract })).ok).toBe(true);
    expect(verifyToken(engine, serialiseToken(child), context())).toMatchObject({
      denial: { type: "contract_mismatch", detail: "attenuations[0].contractId" },
    });
  });

  test("has a split form, and refuses a signature by another key", () => {
    const parent = rootToken();
    const block = buildAttenuation(parent, next, id(alice));
    const digest = attenuationSigningInput(engine, parent, block);
    const signature = engine.sign(digest, alice.privateKey);
    expect(attachAttenuationSignature(engine, parent, block, signature)).toEqual(
      attenuateToken(engine, parent, next, alice),
    );
    const other = engine.sign(digest, bob.privateKey);
    expect(denialOf(() => attachAttenuationSignature(engine, parent, block, other))?.type).toBe(
      "invalid_signature",
    );
    const wider = { ...block, maxBudgetMicrocents: 5000 };
    expect(denialOf(() => attachAttenuationSignature(engine, parent, wider, signature))).toMatchObject(
      violation,
    );
  });
});

describe("bytes", () => {
  const token = attenuateToken(
    engine,
    rootToken(),
    { delegatee: id(bob), delegationId: delegation(2) },
    alice,
  );

  test("a token is base64url of canonical JSON, and reads back equal", () => {
    const serialised = serialiseToken(token);
    expect(serialised.format).toBe("delegateos-sjt-v1");
    expect(Buffer.from(serialised.token, "base64url").toString()).toBe(canonicalize(token));
    expect(parseToken(serialised)).toEqual({ ok: true, token });
    expect(parseToken(serialised.token)).toEqual({ ok: true, token });
  });

  test("signatures and revocation ids equal those of the libraries that the text names", () => {
    const longer = attenuateToken(engine, token, { delegatee: id(carol), maxBudgetMicrocents: 7 }, bob);
    const { authority, attenuations, signatures } = longer;
    const digest = (value: unknown) => blake2b(canonicalize(value) as string, undefined, 32);
    const verify = (i: number, value: unknown) => {
      const entry = signatures[i] as { signature: string; signer: string };
      const key = decodeBase64Url(entry.signer) as Uint8Array;
      return ed.verify(decodeBase64Url(entry.signature) as Uint8Array, digest(value), key, { zip215: false });
    };
    expect(verify(0, { authority })).toBe(true);
    expect(verify(1, { authority, attenuations: attenuations.slice(0, 1) })).toBe(true);
    expect(verify(2, { authority, attenuations })).toBe(true);
    expect(verify(1, { authority })).toBe(false);
    const ids = [authority, ...attenuations].map((block) => Buffer.from(digest(block)).toString("base64url"));
    expect(revocationIds(engine, longer)).toEqual(ids);
    expect(revocationId(engine, authority)).toBe(ids[0]);
  });

  test("both engines create the same token", () => {
    const other = createToken(portableEngine, params, root, { now: NOW });
    expect(
      attenuateToken(portableEngine, other, { delegatee: id(bob), delegationId: delegation(2) }, alice),
    ).toEqual(token);
  });

  test("J6 a token of more than 16,000 characters is refused", () => {
    const capabilities = Array.from({ length: 12 }, (_, i) =>
      cap("docs", "read", `/${i}${"x".repeat(1000)}`),
    );
    expect(denialOf(() => serialiseToken(rootToken({ capabilities })))).toMatchObject({
      type: "token_too_large",
    });
  });

  test("the engine of the format is complete (DelegateOS 14.4)", () => {
    const sjt = createSjtEngine(engine);
    const serialised = sjt.create(params, root, { now: NOW });
    const child = sjt.attenuate(serialised, { delegatee: id(bob), allowedCapabilities: [] }, alice);
    expect(sjt.format).toBe(child.format);
    expect(sjt.parse(child).ok).toBe(true);
    expect(sjt.revocationIds(child)).toHaveLength(2);
    expect(sjt.verify(child, context())).toMatchObject({
      ok: true,
      scope: { holder: id(bob), capabilities: [] },
    });
    expect(sjt.parse("junk").ok).toBe(false);
  });
});

const violation = { type: "attenuation_violation" };

function cap(namespace: string, action: string, resource: string) {
  return { namespace, action, resource };
}
