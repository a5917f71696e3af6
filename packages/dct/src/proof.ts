import {
  canonicalBytes,
  canonicalJson,
  decodeBase64Url,
  encodeBase64Url,
  isObject,
  parseStrictJson,
} from "@depute/core";
import type { DenialReason } from "./denial.ts";
import type { CryptoEngine } from "./engine.ts";
import { Memo } from "./fast/memo.ts";
import { rememberedKey } from "./fast/words.ts";
import { CLOCK_SKEW_MS, MAX_PROOF_CHARS, PROOF_WINDOW_MS } from "./limits.ts";
import { parsePrincipal } from "./principal.ts";
import { bytesOf, utf8Of } from "./scratch.ts";
import type { Keypair } from "./types.ts";

/** What a proof is for. `now` is milliseconds since 1970, the machine's clock when absent. */
export interface ProofClaims {
  /** Method: an HTTP method (POST for every gRPC call), or `MCP` over stdio. */
  htm: string;
  /** Address without query and fragment, or the audience of an MCP proxy. */
  htu: string;
  /** The serialised token that is presented along; absent where the proof states who calls and nothing more. */
  token?: string;
  /** Arguments of a tool call; the proof then holds for these alone. */
  arguments?: unknown;
  now?: number;
  /** Made up when absent. */
  jti?: string;
  /** Set only by requestSession: the proof opens a session and proves nothing else. */
  session?: SessionClaims;
}

/** What a proof that opens a session says besides. */
export interface SessionClaims {
  /** The holder's key for this session alone, in the form of a principal id. */
  readonly epk: string;
  /** Where the session is to be used, as HolderSession has it. */
  readonly aud: string;
}

/** What a verifier expects of a proof. */
export interface ProofExpectation {
  readonly htm: string;
  readonly htu: string;
  /** Whether an address that is spelled otherwise than `htu` is the same (RFC 9449 section 4.3); never, when absent. */
  readonly isSameTarget?: (claimed: string, htu: string) => boolean;
  /** Who must have signed it; anyone when absent. */
  readonly principal?: string;
  /** The serialised token that came along. */
  readonly token?: string;
  /** argumentsDigest of the call's arguments, for a tool call. */
  readonly ard?: string;
  /** Audience of the session that the proof is to open; absent for every other proof. */
  readonly opens?: string;
  /** Milliseconds since 1970. */
  readonly now: number;
  /** How long after its iat a proof is accepted, in milliseconds. */
  readonly windowMs?: number;
  /** How far iat may lie in the future, in milliseconds. */
  readonly skewMs?: number;
}

/**
 * A proof that holds. It may have been seen before: the caller refuses a (principal, jti) that it remembers, and
 * remembers this one until `expiresAt` (milliseconds since 1970), after which the proof is refused by its time.
 */
export interface AcceptedProof {
  readonly jti: string;
  readonly principal: string;
  /** RFC 7638 thumbprint of the key. */
  readonly thumbprint: string;
  /** When its holder says that it was made, which may be ahead of the verifier's clock. */
  readonly issuedAt: number;
  readonly expiresAt: number;
  /** Of a proof that opens a session: the holder's key for it. */
  readonly epk?: string;
  /** Of a call in a session: its number there, to be used up by HolderSession.use in place of the jti. */
  readonly counter?: number;
}

const utf8 = new TextEncoder();
const strictUtf8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/** The principals of headers of proofs that held: a holder's header is the same in every proof. */
const headers = new Memo<string>(1024);
const thumbprints = new Memo<string>(1024);
/** In characters; one that createProof writes has 124. */
const MAX_REMEMBERED_HEADER = 256;

/**
 * A holder proof in the form of RFC 9449 (DPoP): a JWS of type dpop+jwt, alg EdDSA (RFC 8037; checkProof takes RFC 9864's
 * Ed25519 as well), with the claims htm,
 * htu, iat, jti, with a token ath, with arguments `ard`. The type keeps it apart from everything else that the same
 * key signs. Throws CanonicalError for arguments that are not JSON.
 */
export function createProof(engine: CryptoEngine, keypair: Keypair, claims: ProofClaims): string {
  const jwk = { crv: "Ed25519", kty: "OKP", x: keypair.principal.id };
  const payload = {
    htm: claims.htm,
    htu: claims.htu,
    iat: Math.floor((claims.now ?? Date.now()) / 1000),
    jti: claims.jti ?? encodeBase64Url(crypto.getRandomValues(new Uint8Array(16))),
    ...(claims.token !== undefined && { ath: tokenDigest(engine, claims.token) }),
    ...(claims.arguments !== undefined && { ard: argumentsDigest(engine, claims.arguments) }),
    ...claims.session,
  };
  const signed = `${part({ alg: "EdDSA", jwk, typ: "dpop+jwt" })}.${part(payload)}`;
  return `${signed}.${encodeBase64Url(engine.sign(utf8.encode(signed), keypair.privateKey))}`;
}

/** The claim `ath` (RFC 9449 section 4.2): base64url of the SHA-256 of the serialised token. */
export function tokenDigest(engine: CryptoEngine, token: string): string {
  return encodeBase64Url(engine.sha256(utf8Of(token)));
}

/** The claim `ard`: base64url of the SHA-256 of the canonical JSON of a call's arguments. Throws CanonicalError. */
export function argumentsDigest(engine: CryptoEngine, args: unknown): string {
  return encodeBase64Url(engine.sha256(canonicalBytes(args)));
}

/** The RFC 7638 thumbprint of a principal's key. */
export function thumbprint(engine: CryptoEngine, principal: string): string {
  return encodeBase64Url(
    engine.sha256(utf8.encode(canonicalJson({ crv: "Ed25519", kty: "OKP", x: principal }))),
  );
}

function rememberedThumbprint(engine: CryptoEngine, principal: string): string {
  const known = thumbprints.get(principal);
  if (known !== undefined) return known;
  const print = thumbprint(engine, principal);
  thumbprints.set(principal, print);
  return print;
}

/**
 * Checks a holder proof (RFC 9449 section 4.3) and never throws. Denied with proof_required when there is none,
 * with invalid_proof and the member at fault otherwise, with internal_context for an expectation that makes no sense.
 * `ath`, `ard` and `epk` must be there exactly when they are expected: a proof for one kind of call is none for another.
 */
// biome-ignore lint/complexity/noExcessiveCognitiveComplexity: the checks of a proof in the order of RFC 9449
export function checkProof(
  engine: CryptoEngine,
  proof: unknown,
  expected: ProofExpectation,
): { ok: true; proof: AcceptedProof } | { ok: false; denial: DenialReason } {
  if (proof === undefined || proof === null || proof === "") return refused("proof_required");
  const window = expected.windowMs ?? PROOF_WINDOW_MS;
  const skew = expected.skewMs ?? CLOCK_SKEW_MS;
  if (typeof expected.htm !== "string" || typeof expected.htu !== "string")
    return refused("internal_context");
  if (![expected.now, window, skew].every((ms) => Number.isFinite(ms) && ms >= 0))
    return refused("internal_context");
  if (typeof proof !== "string" || proof.length > MAX_PROOF_CHARS) return refused("invalid_proof", "size");
  const parts = proof.split(".");
  if (parts.length !== 3) return refused("invalid_proof", "form");
  const known = headers.get(parts[0] ?? "");
  const [header, payload] = [known ?? readPart(parts[0]), readPart(parts[1])];
  if (header === undefined || payload === undefined) return refused("invalid_proof", "form");
  const principal = typeof header === "string" ? header : readHeader(header);
  if (principal === undefined) return refused("invalid_proof", "header");
  if (expected.principal !== undefined && principal !== expected.principal)
    return refused("invalid_proof", "jwk");

  const wrong = wrongClaim(engine, payload, expected, window, skew);
  if (wrong !== undefined) return refused("invalid_proof", wrong);
  const signature = decodeBase64Url(parts[2] ?? "");
  const key = rememberedKey(principal);
  const signed = proof.slice(0, proof.lastIndexOf("."));
  if (signature === undefined || key === undefined || !engine.verify(signature, utf8Of(signed), key)) {
    return refused("invalid_proof", "signature");
  }
  if (known === undefined && (parts[0] ?? "").length <= MAX_REMEMBERED_HEADER)
    headers.set(parts[0] ?? "", principal);
  const { jti, iat } = payload as { jti: string; iat: number };
  const issuedAt = iat * 1000;
  const times = { issuedAt, expiresAt: issuedAt + window };
  const accepted = { jti, principal, thumbprint: rememberedThumbprint(engine, principal), ...times };
  const isOpening = expected.opens !== undefined;
  return { ok: true, proof: isOpening ? { ...accepted, epk: payload.epk as string } : accepted };
}

/** The names of the algorithm: RFC 8037's, and RFC 9864's for the one curve. */
const ALGORITHMS: readonly unknown[] = ["EdDSA", "Ed25519"];

/** Members of a public key beside the three that name it, each with what it may say (RFC 7517 4, Web Cryptography 15). */
const KEY_MEMBERS: Readonly<Record<string, (value: unknown) => boolean>> = {
  kid: (value) => typeof value === "string",
  use: (value) => value === "sig",
  alg: (value) => ALGORITHMS.includes(value),
  key_ops: (value) => Array.isArray(value) && value.every((one) => one === "verify"),
  ext: (value) => typeof value === "boolean",
};

/**
 * The principal of a header that has exactly typ, alg and a public Ed25519 jwk. The key may have what says more of a
 * public key; whatever else it has, as a private key's `d`, is refused.
 */
function readHeader(header: Record<string, unknown>): string | undefined {
  const { typ, alg, jwk } = header;
  if (!hasExactly(header, ["alg", "jwk", "typ"]) || typ !== "dpop+jwt") return undefined;
  if (!ALGORITHMS.includes(alg) || !isObject(jwk)) return undefined;
  const { kty, crv, x, ...more } = jwk;
  if (kty !== "OKP" || crv !== "Ed25519") return undefined;
  const isPublic = Object.entries(more).every(
    ([name, value]) => Object.hasOwn(KEY_MEMBERS, name) && KEY_MEMBERS[name]?.(value) === true,
  );
  return isPublic && parsePrincipal(x) !== undefined ? (x as string) : undefined;
}

function wrongClaim(
  engine: CryptoEngine,
  payload: Record<string, unknown>,
  expected: ProofExpectation,
  window: number,
  skew: number,
): string | undefined {
  const claim = (name: string) => (Object.hasOwn(payload, name) ? payload[name] : undefined);
  const [iat, jti, htu] = [claim("iat"), claim("jti"), claim("htu")];
  if (claim("htm") !== expected.htm) return "htm";
  if (htu !== expected.htu && !(typeof htu === "string" && expected.isSameTarget?.(htu, expected.htu)))
    return "htu";
  if (typeof jti !== "string" || !/^[\x21-\x7e]{8,128}$/.test(jti)) return "jti";
  if (!Number.isSafeInteger(iat)) return "iat";
  const age = expected.now - (iat as number) * 1000;
  if (age > window || age < -skew) return "iat";
  const ath = expected.token === undefined ? undefined : tokenDigest(engine, expected.token);
  if (claim("ath") !== ath) return "ath";
  if (claim("ard") !== expected.ard) return "ard";
  if (expected.opens === undefined) return claim("epk") === undefined ? undefined : "epk";
  if (claim("aud") !== expected.opens) return "aud";
  if (parsePrincipal(claim("epk")) === undefined) return "epk";
  return undefined;
}

function hasExactly(value: Record<string, unknown>, names: readonly string[]): boolean {
  return Object.keys(value).length === names.length && names.every((name) => Object.hasOwn(value, name));
}

function readPart(text: string | undefined): Record<string, unknown> | undefined {
  const bytes = bytesOf(text ?? "");
  if (bytes === undefined) return undefined;
  try {
    const value = parseStrictJson(strictUtf8.decode(bytes));
    return isObject(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

function part(value: unknown): string {
  return encodeBase64Url(canonicalBytes(value));
}

function refused(type: DenialReason["type"], detail?: string): { ok: false; denial: DenialReason } {
  return { ok: false, denial: detail === undefined ? { type } : { type, detail } };
}
