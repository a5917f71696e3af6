import { createPrivateKey, createPublicKey, generateKeyPairSync, sign, verify } from "node:crypto";
import { encodeBase64Url } from "@depute/core";
import { nativeEngine as engine } from "@depute/dct/native";
import { expect, test } from "vitest";
import { type EcKey, isEs256, jwkThumbprint, type ProofHolder, verifyDpopProof } from "./proof.ts";
import { ALPHA, BETA, T0 } from "./testing/stage.ts";

const HTU = "/depute.tasks.v1.SessionService/AppendMessage";
const EC = generateKeyPairSync("ec", { namedCurve: "P-256" });
const EC_JWK = EC.publicKey.export({ format: "jwk" }) as { kty: string; crv: string } & EcKey;
const OKP_JWK = { kty: "OKP", crv: "Ed25519", x: ALPHA.key };
const CLAIMS = { htm: "POST", htu: HTU, iat: T0 / 1000, jti: "0123456789" };

const part = (value: unknown) => encodeBase64Url(new TextEncoder().encode(JSON.stringify(value)));
const bySeed = (seed: Uint8Array) => (bytes: Uint8Array) => engine.sign(bytes, seed);
const byEc = (bytes: Uint8Array) =>
  new Uint8Array(sign("sha256", bytes, { key: EC.privateKey, dsaEncoding: "ieee-p1363" }));

function jwt(
  claims: object = CLAIMS,
  header: object = { typ: "dpop+jwt", alg: "EdDSA", jwk: OKP_JWK },
  by: (bytes: Uint8Array) => Uint8Array = bySeed(ALPHA.seed),
): string {
  const signed = `${part(header)}.${part(claims)}`;
  return `${signed}.${encodeBase64Url(by(new TextEncoder().encode(signed)))}`;
}

const es256 = (claims: object = CLAIMS, jwk: object = EC_JWK) =>
  jwt(claims, { typ: "dpop+jwt", alg: "ES256", jwk }, byEc);

function proofOutcome(text: string, holder: ProofHolder = ALPHA, nowMs = T0): string {
  const rules = {
    targets: [
      { htm: "POST", htu: HTU },
      { htm: "POST", htu: "https://asp.example/messages" },
    ],
    verifyEs256: (signature: Uint8Array, message: Uint8Array, { x, y }: EcKey) =>
      verify(
        "sha256",
        message,
        {
          key: createPublicKey({ key: { kty: "EC", crv: "P-256", x, y }, format: "jwk" }),
          dsaEncoding: "ieee-p1363",
        },
        signature,
      ),
  };
  const verdict = verifyDpopProof(engine, text, holder, rules, nowMs);
  return verdict.ok ? verdict.proven.id : verdict.refusal.code;
}

const WITH_EC: ProofHolder = { ...ALPHA, proofThumbprint: jwkThumbprint(engine, EC_JWK) };

test("a proof by EdDSA or ES256 is valid under the sender's published key, for each address of the call", () => {
  expect(proofOutcome(jwt())).toBe(`${ALPHA.key}.0123456789`);
  expect(proofOutcome(jwt({ ...CLAIMS, htu: "https://asp.example/messages" }))).toBe(
    `${ALPHA.key}.0123456789`,
  );
  expect(proofOutcome(es256(), WITH_EC)).toBe(`${EC_JWK.x}.0123456789`);
  const withEd = { ...BETA, proofThumbprint: jwkThumbprint(engine, { x: ALPHA.key }) };
  expect(proofOutcome(jwt(), withEd)).toBe(`${ALPHA.key}.0123456789`);
  expect([isEs256(es256()), isEs256(jwt()), isEs256("e30.e30.e30"), isEs256("")]).toEqual([
    true,
    false,
    false,
    false,
  ]);
});

test("a thumbprint is computed by RFC 7638", () => {
  const claimed = { crv: "P-256", kty: "EC", x: EC_JWK.x, y: EC_JWK.y };
  expect(jwkThumbprint(engine, EC_JWK)).toBe(
    encodeBase64Url(engine.sha256(new TextEncoder().encode(JSON.stringify(claimed)))),
  );
});

test("a proof is valid for a minute before and after its time", () => {
  expect(proofOutcome(jwt(), ALPHA, T0 + 60_000)).toBe(`${ALPHA.key}.0123456789`);
  expect(proofOutcome(jwt(), ALPHA, T0 - 60_000)).toBe(`${ALPHA.key}.0123456789`);
  expect(proofOutcome(jwt(), ALPHA, T0 + 60_001)).toBe("stale_proof");
  expect(proofOutcome(jwt(), ALPHA, T0 - 60_001)).toBe("stale_proof");
});

const ED = { typ: "dpop+jwt", alg: "EdDSA", jwk: OKP_JWK };
const flipped = (text: string) => `${text.slice(0, -2)}${text.at(-2) === "A" ? "B" : "A"}${text.at(-1)}`;
const privateJwk = createPrivateKey(EC.privateKey.export({ format: "pem", type: "pkcs8" }).toString()).export(
  { format: "jwk" },
);

test.each<[string, string, ProofHolder?]>([
  ["a text that is not a JWT", "e30.e30.e30"],
  ["two parts", jwt().split(".").slice(0, 2).join(".")],
  ["four parts", `${jwt()}.e30`],
  ["too long", jwt({ ...CLAIMS, more: "x".repeat(9000) })],
  ["another party's key", jwt(), BETA],
  ["a key that the card does not publish", jwt(), WITH_EC],
  ["ES256 where the card publishes no such key", es256()],
  ["a signature of another key", jwt(CLAIMS, ED, bySeed(BETA.seed))],
  ["another signature", flipped(jwt())],
  [
    "an ES256 signature in DER",
    jwt(
      CLAIMS,
      { ...ED, alg: "ES256", jwk: EC_JWK },
      (b) => new Uint8Array(sign("sha256", b, EC.privateKey)),
    ),
    WITH_EC,
  ],
  ["another type", jwt(CLAIMS, { ...ED, typ: "JWT" })],
  ["no algorithm", jwt(CLAIMS, { ...ED, alg: "none" })],
  ["an algorithm that is not the key's", jwt(CLAIMS, { ...ED, alg: "ES256" })],
  ["a critical extension", jwt(CLAIMS, { ...ED, crit: ["exp"] })],
  ["a private key", es256(CLAIMS, privateJwk), WITH_EC],
  ["no key", jwt(CLAIMS, { ...ED, jwk: undefined })],
  ["another method", jwt({ ...CLAIMS, htm: "GET" })],
  ["another address", jwt({ ...CLAIMS, htu: "/depute.tasks.v1.SessionService/CreateSession" })],
  ["no id", jwt({ ...CLAIMS, jti: undefined })],
  ["a short id", jwt({ ...CLAIMS, jti: "1" })],
  ["an id with a line feed", jwt({ ...CLAIMS, jti: "0123\n45678" })],
  ["no time", jwt({ ...CLAIMS, iat: undefined })],
  ["a fractional time", jwt({ ...CLAIMS, iat: T0 / 1000 + 0.5 })],
])("a proof with %s is refused", (_, text, holder = ALPHA) => {
  expect(proofOutcome(text, holder)).toBe("bad_proof");
});
