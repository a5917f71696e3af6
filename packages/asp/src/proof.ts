import { decodeBase64Url, encodeBase64Url, isObject, parseStrictJson } from "@depute/core";
import { type CryptoEngine, thumbprint } from "@depute/dct";
import { MAX_CLOCK_SKEW_MS } from "./limits.ts";
import { type Refusal, Refused } from "./refusal.ts";
import type { Party } from "./session.ts";

/** Maximum length of a proof in characters; the protobuf contract has the same limit. */
const MAX_PROOF_CHARS = 8192;

/** A call that a proof may name: an HTTP method, and an address without query and fragment. */
export interface ProofTarget {
  readonly htm: string;
  readonly htu: string;
}

/** The public half of an EC P-256 key, each coordinate in base64url. */
export interface EcKey {
  readonly x: string;
  readonly y: string;
}

/** The rules for checking a proof of possession. */
export interface ProofRules {
  /** The calls for which the proof is accepted. */
  readonly targets: readonly ProofTarget[];
  /** Whether a JWS signature (64 bytes) is a valid signature by ECDSA over P-256 with SHA-256. */
  readonly verifyEs256: (signature: Uint8Array, message: Uint8Array, key: EcKey) => boolean;
}

/**
 * A valid proof. The platform stores `id` until `expireMs`, and refuses any proof with a stored id. So no proof is
 * used twice.
 */
export interface Proven {
  /**
   * The x coordinate of the proof's key, joined with the id (`jti`) in the proof. An id alone is unique only among
   * the proofs of one key.
   */
  readonly id: string;
  /** The time at which the proof expires, in epoch milliseconds. */
  readonly expireMs: number;
}

/** The party whose key the proof must show. */
export type ProofHolder = Pick<Party, "key" | "proofThumbprint">;

type ProofKey = { readonly alg: "EdDSA"; readonly x: string } | ({ readonly alg: "ES256" } & EcKey);

const utf8 = new TextEncoder();
const strictUtf8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });
const JTI = /^[\x21-\x7e]{8,128}$/;
const COORDINATE = /^[A-Za-z0-9_-]{43}$/;

/**
 * Checks the DPoP proof of a message (RFC 9449 4.3), signed by EdDSA or ES256. The proof must name the call, and its
 * time must be close to the server's time. Its key must be the proof key on the sender's card. If the card has no
 * proof key, the key must be the sender's signing key. A proof shows possession of the key only at the time of the
 * call, so the platform checks it once, on arrival. Transcripts are verified by the signatures instead.
 *
 * @throws Refused bad_proof, stale_proof
 */
export function checkProof(
  engine: CryptoEngine,
  jwt: string,
  sender: ProofHolder,
  { targets, verifyEs256 }: ProofRules,
  nowMs: number,
): Proven {
  const [head = "", payload = "", tail = "", ...more] = jwt.length > MAX_PROOF_CHARS ? [] : jwt.split(".");
  const [header, claims] = [partOf(head), partOf(payload)];
  if (header === undefined || claims === undefined || more.length > 0)
    throw bad("the proof is not a JWT", "form");
  const key = keyOf(header);
  if (!isKeyOf(engine, key, sender)) throw bad("jwk must be the sender's key", "jwk");
  const { htm, htu, iat, jti } = claims;
  if (!targets.some((target) => target.htm === htm && target.htu === htu)) {
    const isMethod = targets.some((target) => target.htm === htm);
    throw bad(
      `htm and htu must name the call ${targets.map((target) => `${target.htm} ${target.htu}`).join(" or ")}`,
      isMethod ? "htu" : "htm",
    );
  }
  if (typeof jti !== "string" || !JTI.test(jti))
    throw bad("jti must have 8 to 128 printable characters", "jti");
  if (typeof iat !== "number" || !Number.isSafeInteger(iat)) throw bad("iat is not a time", "iat");
  const signature = decodeBase64Url(tail);
  const signed = utf8.encode(`${head}.${payload}`);
  if (signature === undefined || !isSigned(engine, key, signature, signed, verifyEs256)) {
    throw bad("the proof is not signed by the key in jwk", "signature");
  }
  if (Math.abs(nowMs - iat * 1000) > MAX_CLOCK_SKEW_MS) {
    throw new Refused(
      "stale_proof",
      `iat differs by more than ${MAX_CLOCK_SKEW_MS} ms from the server's time: set the sender's clock`,
      "iat",
    );
  }
  return { id: `${key.x}.${jti}`, expireMs: iat * 1000 + MAX_CLOCK_SKEW_MS };
}

/** Like checkProof, for proofs outside of messages. Returns the refusal instead of throwing it. */
export function verifyDpopProof(
  engine: CryptoEngine,
  jwt: string,
  holder: ProofHolder,
  rules: ProofRules,
  nowMs: number,
): { readonly ok: true; readonly proven: Proven } | { readonly ok: false; readonly refusal: Refusal } {
  try {
    return { ok: true, proven: checkProof(engine, jwt, holder, rules, nowMs) };
  } catch (thrown) {
    if (thrown instanceof Refused) return { ok: false, refusal: thrown.refusal };
    throw thrown;
  }
}

function isKeyOf(
  engine: CryptoEngine,
  key: ProofKey,
  { key: signing, proofThumbprint }: ProofHolder,
): boolean {
  if (proofThumbprint === undefined) return key.alg === "EdDSA" && key.x === signing;
  return jwkThumbprint(engine, { y: undefined, ...key }) === proofThumbprint;
}

/** Returns the RFC 7638 thumbprint of an EC P-256 key, or of an Ed25519 key if `y` is absent. */
export function jwkThumbprint(engine: CryptoEngine, key: { x: string; y?: string | undefined }): string {
  const { x, y } = key;
  if (y === undefined) return thumbprint(engine, x);
  // RFC 7638 requires this order of members, without white space. Base64url needs no escapes.
  return encodeBase64Url(engine.sha256(utf8.encode(`{"crv":"P-256","kty":"EC","x":"${x}","y":"${y}"}`)));
}

/** Whether a proof's header names ES256. */
export function isEs256(jwt: string): boolean {
  return partOf(jwt.split(".", 1)[0] ?? "")?.alg === "ES256";
}

function keyOf(header: Record<string, unknown>): ProofKey {
  const { typ, alg, jwk, crit } = header;
  if (typ !== "dpop+jwt" || crit !== undefined)
    throw bad("typ must be dpop+jwt, and crit must be absent", "header");
  if (!isObject(jwk) || Object.hasOwn(jwk, "d")) throw bad("jwk is not a public key", "jwk");
  const { kty, crv, x, y } = jwk;
  if (typeof x !== "string" || !COORDINATE.test(x)) throw bad("jwk is not a public key", "jwk");
  // RFC 9864 names the algorithm `Ed25519`, after its curve.
  if ((alg === "EdDSA" || alg === "Ed25519") && kty === "OKP" && crv === "Ed25519") {
    return { alg: "EdDSA", x };
  }
  if (alg === "ES256" && kty === "EC" && crv === "P-256" && typeof y === "string" && COORDINATE.test(y)) {
    return { alg, x, y };
  }
  throw bad("alg must be EdDSA, Ed25519 or ES256, with a jwk of the matching kind", "header");
}

function isSigned(
  engine: CryptoEngine,
  key: ProofKey,
  signature: Uint8Array,
  signed: Uint8Array,
  verifyEs256: ProofRules["verifyEs256"],
): boolean {
  if (key.alg === "ES256") return verifyEs256(signature, signed, key);
  const publicKey = decodeBase64Url(key.x);
  return publicKey !== undefined && engine.verify(signature, signed, publicKey);
}

function partOf(text: string): Record<string, unknown> | undefined {
  const bytes = decodeBase64Url(text);
  if (bytes === undefined || bytes.length === 0) return undefined;
  try {
    const value = parseStrictJson(strictUtf8.decode(bytes));
    return isObject(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

/** @param claim the invalid member of the proof */
function bad(detail: string, claim: string): Refused {
  return new Refused("bad_proof", detail, claim);
}
