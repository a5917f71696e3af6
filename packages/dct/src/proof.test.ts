import { createHash } from "node:crypto";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { nativeEngine } from "./engine/native.ts";
import { portableEngine } from "./engine/portable.ts";
import { argumentsDigest, checkProof, createProof, type ProofExpectation, tokenDigest } from "./proof.ts";
import { alice, bob, encode, encodeText, engine, id, NOW } from "./testing/fixtures.ts";

const claims = {
  htm: "POST",
  htu: "https://depute.example/a.B/C",
  token: "dG9rZW4",
  now: NOW,
  jti: "proof-0001",
};
const expected: ProofExpectation = {
  htm: claims.htm,
  htu: claims.htu,
  token: claims.token,
  principal: id(alice),
  now: NOW,
};
const honest = createProof(engine, alice, claims);
const header = { alg: "EdDSA", typ: "dpop+jwt", jwk: { crv: "Ed25519", kty: "OKP", x: id(alice) } };
const payload = {
  htm: claims.htm,
  htu: claims.htu,
  iat: NOW / 1000,
  jti: "proof-0001",
  ath: tokenDigest(engine, claims.token),
};

/** Returns a JWS with the given header and payload, with a valid signature of alice. */
function jws(head: unknown, body: unknown): string {
  return signText(encode(head), encode(body));
}

function signText(head: string, body: string): string {
  const signature = engine.sign(new TextEncoder().encode(`${head}.${body}`), alice.privateKey);
  return `${head}.${body}.${Buffer.from(signature).toString("base64url")}`;
}

describe.each([nativeEngine, portableEngine])("holder proof, by $name", (one) => {
  test("is valid for its call", () => {
    const thumbprint = createHash("sha256")
      .update(`{"crv":"Ed25519","kty":"OKP","x":"${id(alice)}"}`)
      .digest("base64url");
    expect(checkProof(one, honest, expected)).toEqual({
      ok: true,
      proof: { jti: "proof-0001", principal: id(alice), thumbprint, issuedAt: NOW, expiresAt: NOW + 60_000 },
    });
    expect(createProof(one, alice, claims)).toBe(honest);
  });

  test("has the form of RFC 9449, with ath as SHA-256 of the token", () => {
    const [head, body] = honest.split(".").map((part) => Buffer.from(part, "base64url").toString());
    expect(JSON.parse(head as string)).toEqual(header);
    expect(JSON.parse(body as string)).toEqual(payload);
    expect(payload.ath).toBe(createHash("sha256").update(claims.token).digest("base64url"));
  });

  test.each<[string, unknown, string]>([
    ["nothing", undefined, "proof_required"],
    ["an empty text", "", "proof_required"],
    ["not text", 7, "invalid_proof"],
    ["two parts", honest.split(".").slice(0, 2).join("."), "invalid_proof"],
    ["four parts", `${honest}.`, "invalid_proof"],
    ["over 4,096 characters", jws(header, { ...payload, x: "x".repeat(4096) }), "invalid_proof"],
    ["K8 padding", `${honest}=`, "invalid_proof"],
    [
      "a byte order mark",
      signText(encodeText(`\ufeff${JSON.stringify(header)}`), encode(payload)),
      "invalid_proof",
    ],
    ["a payload that is an array", jws(header, [payload]), "invalid_proof"],
    ["K9 another type", jws({ ...header, typ: "JWT" }, payload), "invalid_proof"],
    ["no type", jws({ alg: header.alg, jwk: header.jwk }, payload), "invalid_proof"],
    ["alg none", `${encode({ ...header, alg: "none" })}.${encode(payload)}.`, "invalid_proof"],
    ["alg ES256", jws({ ...header, alg: "ES256" }, payload), "invalid_proof"],
    ["a critical extension", jws({ ...header, crit: ["b64"], b64: false }, payload), "invalid_proof"],
    [
      "a private key in the header",
      jws({ ...header, jwk: { ...header.jwk, d: "AA" } }, payload),
      "invalid_proof",
    ],
    [
      "K3 a key of small order",
      jws({ ...header, jwk: { ...header.jwk, x: "A".repeat(43) } }, payload),
      "invalid_proof",
    ],
    [
      "another principal's key, signed by alice",
      jws({ ...header, jwk: { ...header.jwk, x: id(bob) } }, payload),
      "invalid_proof",
    ],
    ["another holder's proof", createProof(engine, bob, claims), "invalid_proof"],
    ["another method", jws(header, { ...payload, htm: "GET" }), "invalid_proof"],
    ["another address", jws(header, { ...payload, htu: `${claims.htu}/D` }), "invalid_proof"],
    ["an address with a query", jws(header, { ...payload, htu: `${claims.htu}?a` }), "invalid_proof"],
    ["another token", createProof(engine, alice, { ...claims, token: "other" }), "invalid_proof"],
    ["no token", jws(header, without("ath")), "invalid_proof"],
    [
      "arguments where none are expected",
      createProof(engine, alice, { ...claims, arguments: {} }),
      "invalid_proof",
    ],
    ["B5 no iat", jws(header, without("iat")), "invalid_proof"],
    ["B5 iat as text", jws(header, { ...payload, iat: String(payload.iat) }), "invalid_proof"],
    [
      "B5 iat beyond numbers",
      signText(encode(header), encodeText(JSON.stringify(payload).replace(`${payload.iat}`, "1e999"))),
      "invalid_proof",
    ],
    ["no jti", jws(header, without("jti")), "invalid_proof"],
    ["a short jti", jws(header, { ...payload, jti: "1" }), "invalid_proof"],
    ["a jti with white space", jws(header, { ...payload, jti: "proof 0001" }), "invalid_proof"],
    ["an age of 61 seconds", createProof(engine, alice, { ...claims, now: NOW - 61_000 }), "invalid_proof"],
    [
      "a time 31 seconds ahead",
      createProof(engine, alice, { ...claims, now: NOW + 31_000 }),
      "invalid_proof",
    ],
  ])("refuses %s", (_, proof, type) => {
    expect(checkProof(one, proof, expected)).toMatchObject({ ok: false, denial: { type } });
  });

  test.each<[string, object, object]>([
    ["the curve's own algorithm (RFC 9864)", { alg: "Ed25519" }, {}],
    ["a key with kid, use and alg", {}, { kid: "k1", use: "sig", alg: "EdDSA" }],
    ["a key of RFC 9864's algorithm", { alg: "Ed25519" }, { alg: "Ed25519" }],
    ["a key as Web Cryptography exports it", {}, { key_ops: ["verify"], ext: true }],
  ])("accepts %s", (_, head, key) => {
    const proof = jws({ ...header, ...head, jwk: { ...header.jwk, ...key } }, payload);
    expect(checkProof(one, proof, expected)).toMatchObject({ ok: true, proof: { principal: id(alice) } });
  });

  test.each([
    ["a key for encryption", { use: "enc" }],
    ["a key of another algorithm", { alg: "ES256" }],
    ["a key that signs", { key_ops: ["sign"] }],
    ["a kid that is not text", { kid: 7 }],
    ["a member of another kind of key", { k: "AA" }],
  ])("refuses %s", (_, key) => {
    const proof = jws({ ...header, jwk: { ...header.jwk, ...key } }, payload);
    expect(checkProof(one, proof, expected)).toMatchObject({ denial: { detail: "header" } });
  });

  test.each<[string, Partial<ProofExpectation>]>([
    ["NaN as now", { now: Number.NaN }],
    ["an infinite window", { windowMs: Number.POSITIVE_INFINITY }],
    ["no htm", { htm: undefined as never }],
  ])("is denied by an expectation with %s", (_, more) => {
    expect(checkProof(one, honest, { ...expected, ...more })).toMatchObject({
      denial: { type: "internal_context" },
    });
  });
});

test("B5 a proof that is stored until expiresAt is refused by its age afterwards", () => {
  for (const skew of [-60_000, 0, 30_000]) {
    const proof = createProof(engine, alice, { ...claims, now: NOW + skew });
    const result = checkProof(engine, proof, expected);
    const expiresAt = result.ok ? result.proof.expiresAt : expect.fail();
    expect(checkProof(engine, proof, { ...expected, now: expiresAt }).ok).toBe(true);
    expect(checkProof(engine, proof, { ...expected, now: expiresAt + 1 }).ok).toBe(false);
  }
});

test("without an expected principal it identifies the caller; without a token it has no ath", () => {
  const { token: _, principal: __, ...anyone } = expected;
  const { token: ___, ...bare } = claims;
  expect(checkProof(engine, createProof(engine, bob, bare), anyone)).toMatchObject({
    ok: true,
    proof: { principal: id(bob) },
  });
  expect(checkProof(engine, honest, anyone)).toMatchObject({ denial: { detail: "ath" } });
});

test("binds arguments by their canonical form", () => {
  const proof = createProof(engine, alice, { ...claims, arguments: { b: 1, a: [2] } });
  const ard = argumentsDigest(engine, { a: [2], b: 1.0 });
  expect(ard).toBe(createHash("sha256").update('{"a":[2],"b":1}').digest("base64url"));
  expect(checkProof(engine, proof, { ...expected, ard }).ok).toBe(true);
  expect(checkProof(engine, proof, { ...expected, ard: argumentsDigest(engine, {}) }).ok).toBe(false);
  expect(checkProof(engine, proof, expected).ok).toBe(false);
});

test("property: never throws on junk, and refuses every changed proof", () => {
  fc.assert(
    fc.property(
      fc.anything(),
      fc.nat(honest.length - 1),
      fc.constantFrom(..."AZaz09-_.= "),
      (junk, at, character) => {
        expect(checkProof(engine, junk, expected).ok).toBe(false);
        const changed = honest.slice(0, at) + character + honest.slice(at + 1);
        expect(checkProof(engine, changed, expected).ok).toBe(changed === honest);
      },
    ),
  );
});

function without(name: keyof typeof payload): object {
  const { [name]: _, ...rest } = payload;
  return rest;
}
