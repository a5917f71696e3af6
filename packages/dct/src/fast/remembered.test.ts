import { describe, expect, test } from "vitest";
import { attenuateToken } from "../attenuate.ts";
import { checkProof, createProof } from "../proof.ts";
import { RevocationList } from "../revocation.ts";
import { serialiseToken } from "../serialise.ts";
import { alice, bob, carol, context, encode, engine, id, NOW, rootToken, sign } from "../testing/fixtures.ts";
import type { SignedJSONToken } from "../types.ts";
import { VerifiedPrefixes } from "../verified-prefixes.ts";
import { verifyToken } from "../verify.ts";

const first = rootToken();
const second = attenuateToken(engine, first, { delegatee: id(bob) }, alice);
const third = attenuateToken(engine, second, { delegatee: id(carol), maxBudgetMicrocents: 9 }, bob);
const honest = [first, second, third];
const texts = honest.map((token) => serialiseToken(token).token);

describe("remembered holders", () => {
  const claims = { htm: "POST", htu: "https://depute.example/a", token: "t", now: NOW };
  const expected = { ...claims, now: NOW };

  test("a cached header proves nothing: each proof is fully checked", () => {
    const proofs = [alice, bob, alice, bob].map((keypair) => createProof(engine, keypair, claims));
    for (const [i, proof] of proofs.entries()) {
      const principal = id(i % 2 === 0 ? alice : bob);
      expect(checkProof(engine, proof, expected)).toMatchObject({ ok: true, proof: { principal } });
      expect(checkProof(engine, proof, { ...expected, principal: id(carol) })).toMatchObject({
        denial: { type: "invalid_proof", detail: "jwk" },
      });
      const [header, payload, signature] = proof.split(".");
      const [otherHeader, , otherSignature] = (proofs[(i + 1) % 2] as string).split(".");
      for (const forged of [
        [otherHeader, payload, signature],
        [header, payload, otherSignature],
        [header, otherHeader, signature],
      ]) {
        if (forged.join(".") !== proof) expect(checkProof(engine, forged.join("."), expected).ok).toBe(false);
      }
    }
  });
});

describe("remembered signatures", () => {
  const text = texts[2] as string;

  test("X1 a cached part decides nothing: all other checks run again", () => {
    const memory = new VerifiedPrefixes();
    const again = (ctx = context()) => verifyToken(engine, text, ctx, { verified: memory });
    expect(again().ok).toBe(true);
    expect(memory.size).toBe(3);
    expect(again(context({ trustedRoots: new Set() }))).toMatchObject({
      denial: { type: "invalid_signature" },
    });
    expect(again(context({ now: NOW + 9_000_000 }))).toMatchObject({ denial: { type: "expired" } });
    expect(again(context({ spentMicrocents: 9 }))).toMatchObject({ denial: { type: "budget_exceeded" } });
    const revocations = { isRevoked: () => true };
    expect(again(context({ revocations }))).toMatchObject({ denial: { type: "revoked" } });
    const list = new RevocationList(engine);
    expect(
      again(context({ revocations: { isRevoked: list.isRevoked.bind(list), isStale: () => true } })).ok,
    ).toBe(false);
    expect(again(context({ holder: { proof: undefined, htm: "POST", htu: "x" } }))).toMatchObject({
      denial: { type: "proof_required" },
    });
  });

  test("X1 skip the signatures of a verified prefix, and no other check", () => {
    let verifications = 0;
    const counting = {
      ...engine,
      verify: (...args: Parameters<typeof engine.verify>) => {
        verifications++;
        return engine.verify(...args);
      },
    };
    const memory = new VerifiedPrefixes();
    const count = (input: string, one = counting) => {
      verifications = 0;
      verifyToken(one, input, context(), { verified: memory });
      return verifications;
    };
    expect(count(texts[1] as string)).toBe(2);
    expect(count(texts[1] as string)).toBe(0);
    expect(count(texts[0] as string)).toBe(0);
    expect(count(text)).toBe(1);
    expect(count(text)).toBe(0);
    expect(count(text, { ...counting, name: "another" })).toBe(3);
    memory.clear();
    expect(count(text)).toBe(3);
  });

  test("X2 keep valid signatures, and no invalid ones", () => {
    const memory = new VerifiedPrefixes();
    const token = honest[2] as SignedJSONToken;
    for (let i = 0; i < 3; i++) {
      const signatures = token.signatures.map((entry, n) => {
        return n === i ? { ...entry, signature: token.signatures[(i + 1) % 3]?.signature } : entry;
      });
      const forged = encode({ ...token, signatures });
      for (let again = 0; again < 2; again++) {
        expect(verifyToken(engine, forged, context(), { verified: memory })).toMatchObject({
          denial: { type: "invalid_signature" },
        });
      }
    }
    expect(memory.size).toBe(0);
    const stranger = encode(sign({ ...token.authority, issuer: id(bob) }, [], [bob]));
    verifyToken(engine, stranger, context(), { verified: memory });
    expect(memory.size).toBe(0);
  });

  test("are bounded: the least recently used one is evicted", () => {
    const memory = new VerifiedPrefixes(2);
    const tokens = [1, 2, 3].map((n) => serialiseToken(rootToken({ maxBudgetMicrocents: n })).token);
    const ask = (n: number) => {
      let isKnown = true;
      const watching = {
        ...engine,
        verify: (...args: Parameters<typeof engine.verify>) => {
          isKnown = false;
          return engine.verify(...args);
        },
      };
      verifyToken(watching, tokens[n] as string, context(), { verified: memory, path: "reference" });
      return isKnown;
    };
    expect([ask(0), ask(1), ask(0), ask(2), ask(0), ask(1)]).toEqual([
      false,
      false,
      true,
      false,
      true,
      false,
    ]);
    expect(memory.size).toBe(2);
    expect(() => new VerifiedPrefixes(0)).toThrow(RangeError);
  });
});
