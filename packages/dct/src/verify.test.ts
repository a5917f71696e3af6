import { describe, expect, test } from "vitest";
import { attenuateToken } from "./attenuate.ts";
import type { VerificationContext } from "./context.ts";
import { createProof } from "./proof.ts";
import { createRevocation, RevocationList } from "./revocation.ts";
import { serialiseToken } from "./serialise.ts";
import {
  alice,
  bob,
  CONTRACT,
  context,
  delegation,
  encode,
  engine,
  id,
  mallory,
  NOW,
  params,
  root,
  sign,
} from "./testing/fixtures.ts";
import {
  authority,
  honest,
  link,
  malformed,
  read,
  SMALL_R,
  signed,
  spentAtRoot,
  text,
} from "./testing/forge.ts";
import type { SignedJSONToken } from "./types.ts";
import { verifyToken } from "./verify.ts";

describe("C9 order of DelegateOS 10.1", () => {
  const steps: [string, Partial<VerificationContext>, (t: SignedJSONToken) => unknown][] = [
    ["revoked", { revocations: { isRevoked: () => true } }, () => {}],
    ["invalid_signature", {}, (t) => Object.assign(t.signatures[0] as object, { signature: SMALL_R })],
    ["attenuation_violation", {}, () => {}],
    ["proof_required", { holder: { proof: undefined, htm: "POST", htu: "u" } }, () => {}],
    ["expired", { now: NOW + 4_000_000 }, () => {}],
    ["budget_exceeded", { spentMicrocents: 5000 }, () => {}],
    ["contract_mismatch", { contractId: "ct_000000000009" }, () => {}],
    ["capability_not_granted", { request: { ...read, resource: "/x" } }, () => {}],
  ];
  test.each(steps.map(([type], i) => [type, i] as const))(
    "%s is reported before later faults",
    (type, first) => {
      const faults = steps.slice(first);
      const expands = faults.some(([name]) => name === "attenuation_violation");
      const token = sign(authority, [
        link(0, expands ? { maxBudgetMicrocents: 1001 } : {}),
      ]) as unknown as SignedJSONToken;
      const ctx = Object.assign({}, ...faults.map(([, part]) => part));
      for (const [, , change] of faults) change(token);
      expect(verifyToken(engine, encode(token), context(ctx))).toMatchObject({ ok: false, denial: { type } });
    },
  );

  test("the granted capabilities are shown only to a holder with a proof", () => {
    const request = { ...read, resource: "/x" };
    const proof = createProof(engine, alice, { htm: "POST", htu: "https://d/x", token: text, now: NOW });
    const holder = { proof, htm: "POST", htu: "https://d/x" };
    const grantedTo = (ctx: Partial<VerificationContext>) => {
      const result = verifyToken(engine, text, context({ request, ...ctx }));
      return result.ok ? expect.fail() : result.denial.granted;
    };
    expect(grantedTo({ holder })).toEqual(params.capabilities);
    expect(grantedTo({ holder: "proved" })).toEqual(params.capabilities);
    expect(grantedTo({ holder: "bearer" })).toBeUndefined();
  });

  test("a denial contains at most 64 characters of a request", () => {
    const result = verifyToken(
      engine,
      text,
      context({ request: { ...read, resource: `/${"s".repeat(900)}` } }),
    );
    expect(result).toMatchObject({
      denial: { requested: { namespace: "docs", resource: `/${"s".repeat(63)}` } },
    });
  });
});

describe("a token is valid", () => {
  test("with its result, for a root token", () => {
    const result = verifyToken(
      engine,
      { token: text, format: "delegateos-sjt-v1" },
      context({ request: read, spentMicrocents: 300 }),
    );
    expect(result).toMatchObject({
      ok: true,
      scope: {
        capabilities: params.capabilities,
        remainingBudgetMicrocents: 700,
        chainDepth: 0,
        maxChainDepth: 3,
        contractId: CONTRACT,
        delegationId: delegation(1),
        issuer: id(root),
        holder: id(alice),
        expiresAt: NOW + 3_600_000,
      },
      blocks: [
        { signer: id(root), delegatee: id(alice), maxBudgetMicrocents: 1000, expiresAt: NOW + 3_600_000 },
      ],
    });
  });

  test("after an attenuation, only with its holder's proof", () => {
    const allowedCapabilities = [{ ...read, resource: "/project/a" }];
    const child = attenuateToken(
      engine,
      honest,
      { delegatee: id(bob), allowedCapabilities, maxBudgetMicrocents: 10 },
      alice,
    );
    const serialised = serialiseToken(child);
    const claims = { htm: "POST", htu: "https://d/x", token: serialised.token, now: NOW };
    const by = (key: typeof bob) => ({ ...claims, proof: createProof(engine, key, claims) });
    const result = verifyToken(engine, serialised, context({ request: read, holder: by(bob) }));
    expect(result).toMatchObject({
      ok: true,
      proof: { principal: id(bob) },
      scope: { remainingBudgetMicrocents: 10 },
    });
    expect(verifyToken(engine, serialised, context({ request: read, holder: by(alice) }))).toMatchObject({
      denial: { type: "invalid_proof", detail: "jwk" },
    });
  });

  test("C1 only with all its blocks: a holder that removes its attenuation has no proof for the rest", () => {
    const holder = {
      htm: "POST",
      htu: "u",
      proof: createProof(engine, bob, { htm: "POST", htu: "u", token: text, now: NOW }),
    };
    expect(verifyToken(engine, text, context({ holder }))).toMatchObject({
      denial: { type: "invalid_proof" },
    });
  });

  test.each<[string, string, Partial<VerificationContext>]>([
    ["C2 depth to the last hop", signed({ maxChainDepth: 2 }, [link(0), link(1)]), {}],
    [
      "C2 a chain that extends another",
      signed({ chainDepth: 2, parentDelegationId: delegation(9) }, [link(0)]),
      {},
    ],
    ["C4 the millisecond of its expiry", text, { now: NOW + 3_600_000 }],
    ["C4 issued 30 seconds ahead", text, { now: NOW - 30_000 }],
    [
      "C6 a loop, which is counted",
      encode(
        sign(
          authority,
          [link(0, { delegatee: id(alice) }), link(1, { attenuator: id(alice) })],
          [root, alice, alice],
        ),
      ),
      {},
    ],
    ["one microcent left", text, { spentMicrocents: 999 }],
    [
      "its contract and what that requires",
      text,
      { contractId: CONTRACT, requiredCapabilities: ["web:search", "docs:read"] },
    ],
    [
      "a resource of the universal pattern",
      text,
      { request: { namespace: "web", action: "search", resource: "*" } },
    ],
  ])("%s", (_, input, ctx) => {
    expect(verifyToken(engine, input, context(ctx))).toMatchObject({ ok: true });
  });

  test("with relaxed identifiers, if a setting allows them", () => {
    const token = signed({ delegationId: "del_001", contractId: "ct_001" });
    expect(verifyToken(engine, token, context())).toMatchObject({ denial: malformed });
    expect(verifyToken(engine, token, context({ rules: { ids: "relaxed" } }))).toMatchObject({ ok: true });
  });

  test("the remaining budget is the least of all levels, so siblings share their parent's", () => {
    const token = signed({}, [link(0, { maxBudgetMicrocents: 500 })]);
    const result = verifyToken(engine, token, context({ spentMicrocents: spentAtRoot(900) }));
    expect(result).toMatchObject({ ok: true, scope: { remainingBudgetMicrocents: 100 } });
  });

  test("the check is pure: it does not change its arguments", () => {
    const ctx = context({ request: read, revocations: new RevocationList(engine) });
    const before = JSON.stringify(ctx);
    verifyToken(
      engine,
      Object.freeze({ token: text, format: "delegateos-sjt-v1" as const }),
      Object.freeze(ctx),
    );
    expect(JSON.stringify(ctx)).toBe(before);
  });
});

describe("revocation (DelegateOS 4 and 10.1 step 2)", () => {
  const child = serialiseToken(attenuateToken(engine, honest, { delegatee: id(bob) }, alice));
  const verified = verifyToken(engine, child, context());
  const blocks = verified.ok ? verified.blocks : [];

  test.each([
    ["the issuer, of the root block", root, 0, true],
    ["the delegatee, which gives up its own grant", alice, 0, true],
    ["the attenuator, of his own block", alice, 1, true],
    ["a signer above", root, 1, true],
    ["the delegatee of the last block", bob, 1, true],
    ["R1 a delegatee below, of the root block", bob, 0, false],
    ["R1 a stranger, of the root block", mallory, 0, false],
    ["R1 a stranger, of the last block", mallory, 1, false],
  ] as const)("by %s: %s", (_, by, level, denied) => {
    const revocations = new RevocationList(engine);
    const entry = createRevocation(engine, blocks[level]?.revocationId as string, "block", by, NOW);
    expect(revocations.add(entry).ok).toBe(true);
    expect(verifyToken(engine, child, context({ revocations })).ok).toBe(!denied);
    expect(revocations.add(entry, blocks).ok).toBe(denied);
  });

  test("R9 a revoked child leaves its parent valid; a revoked parent invalidates its child", () => {
    const revocations = new RevocationList(engine);
    revocations.add(createRevocation(engine, blocks[1]?.revocationId as string, "chain", alice, NOW));
    expect(verifyToken(engine, text, context({ revocations })).ok).toBe(true);
    expect(verifyToken(engine, child, context({ revocations })).ok).toBe(false);
  });
});
