import {
  canonicalBytes,
  canonicalJson,
  decodeBase64Url,
  encodeBase64Url,
  isObject,
  parseStrictJson,
  randomBytes,
  systemClock,
} from "@depute/core";
import type { DenialReason } from "./denial.ts";
import type { CryptoEngine } from "./engine.ts";
import { Memo } from "./fast/memo.ts";
import { rememberedKey } from "./fast/words.ts";
import { CLOCK_SKEW_MS, MAX_PROOF_CHARS, PROOF_WINDOW_MS } from "./limits.ts";
import { bytesOf, utf8Of } from "./payload.ts";
import { parsePrincipal } from "./principal.ts";
import type { Keypair } from "./types.ts";

/** The claims of a proof. `now` is in milliseconds since 1970; the machine's clock when absent. */
export interface ProofClaims {
  /** The HTTP method of the call (POST for every gRPC call), or `MCP` over stdio. */
  htm: string;
  /** The URL of the call without query and fragment, or the audience of an MCP proxy. */
  htu: string;
  /** The serialised token that is presented with the proof; absent for a proof that only identifies the caller. */
  token?: string;
  /** Arguments of a tool call. The proof is then valid only for these arguments. */
  arguments?: unknown;
  now?: number;
  /** The proof's id; a new id is generated when absent. */
  jti?: string;
  /** Set only by requestSession: the proof opens a holder session and proves nothing else. */
  session?: SessionClaims;
}

/** The additional claims of a proof that opens a holder session. */
export interface SessionClaims {
  /** The holder's key for this holder session alone, in the form of a principal id. */
  readonly epk: string;
  /** The address where the holder session will be used, as in HolderSession. */
  readonly aud: string;
}

/** The claims that a verifier expects in a proof. */
export interface ProofExpectation {
  readonly htm: string;
  readonly htu: string;
  /**
   * Whether an address with another spelling is the same as `htu` (RFC 9449 section 4.3). Without this function only
   * equal spellings are accepted.
   */
  readonly isSameTarget?: (claimed: string, htu: string) => boolean;
  /** The expected signer; any principal when absent. */
  readonly principal?: string;
  /** The serialised token that came with the proof; absent if the call presents no token. */
  readonly token?: string;
  /** The argumentsDigest of the call's arguments, for a tool call. */
  readonly ard?: string;
  /** The audience of the holder session that the proof opens; absent for every other proof. */
  readonly opens?: string;
  /** The time at which the proof is checked, in milliseconds since 1970. */
  readonly now: number;
  /** Milliseconds after its `iat` for which a proof is accepted; PROOF_WINDOW_MS when absent. */
  readonly windowMs?: number;
  /** Maximum milliseconds by which `iat` may be in the future; CLOCK_SKEW_MS when absent. */
  readonly skewMs?: number;
}

/**
 * A valid proof, which may be a replay. The caller must refuse the proof if it has stored the pair of principal and jti
 * before. Otherwise the caller stores the pair until `expiresAt` (milliseconds since 1970). After that time, the check
 * refuses the proof by its age.
 */
export interface AcceptedProof {
  readonly jti: string;
  readonly principal: string;
  /** RFC 7638 thumbprint of the key. */
  readonly thumbprint: string;
  /**
   * The time of the proof by the holder's clock, which may be ahead of the verifier's clock, in milliseconds since
   * 1970.
   */
  readonly issuedAt: number;
  readonly expiresAt: number;
  /** The holder's key for the holder session; set for a proof that opens a session. */
  readonly epk?: string;
  /**
   * The call's number in its holder session; absent for a standalone proof. HolderSession.use consumes this number
   * instead of a jti.
   */
  readonly counter?: number;
}

const utf8 = new TextEncoder();
const strictUtf8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/** Caches the principal of each valid header, because a holder's header is the same in every proof. */
const headers = new Memo<string>(1024);
const thumbprints = new Memo<string>(1024);
/** Maximum length of a cached header, in characters. A header that createProof writes has 158. */
const MAX_REMEMBERED_HEADER = 256;

/**
 * Creates a holder proof in the form of RFC 9449 (DPoP): a JWS of type dpop+jwt, alg EdDSA (RFC 8037; checkProof also
 * accepts RFC 9864's Ed25519). Its claims are htm, htu, iat and jti. A token adds the claim `ath`, and arguments add
 * the claim `ard`. The type distinguishes the proof from the key's other signatures. Throws CanonicalError for
 * arguments that are not JSON.
 */
export function createProof(engine: CryptoEngine, keypair: Keypair, claims: ProofClaims): string {
  const jwk = { crv: "Ed25519", kty: "OKP", x: keypair.principal.id };
  const payload = {
    htm: claims.htm,
    htu: claims.htu,
    iat: Math.floor((claims.now ?? systemClock.now()) / 1000),
    jti: claims.jti ?? encodeBase64Url(randomBytes(16)),
    ...(claims.token !== undefined && { ath: tokenDigest(engine, claims.token) }),
    ...(claims.arguments !== undefined && { ard: argumentsDigest(engine, claims.arguments) }),
    ...claims.session,
  };
  const signed = `${part({ alg: "EdDSA", jwk, typ: "dpop+jwt" })}.${part(payload)}`;
  return `${signed}.${encodeBase64Url(engine.sign(utf8.encode(signed), keypair.privateKey))}`;
}

/** Returns the claim `ath` (RFC 9449 section 4.2): base64url of the SHA-256 of the serialised token. */
export function tokenDigest(engine: CryptoEngine, token: string): string {
  return encodeBase64Url(engine.sha256(utf8Of(token)));
}

/**
 * Returns the claim `ard`: base64url of the SHA-256 of the canonical JSON of a call's arguments. Throws CanonicalError
 * for arguments that are not JSON.
 */
export function argumentsDigest(engine: CryptoEngine, args: unknown): string {
  return encodeBase64Url(engine.sha256(utf8Of(canonicalJson(args))));
}

/** Returns the RFC 7638 thumbprint of a principal's key. */
export function thumbprint(engine: CryptoEngine, principal: string): string {
  return encodeBase64Url(
    engine.sha256(utf8.encode(canonicalJson({ crv: "Ed25519", kty: "OKP", x: principal }))),
  );
}

function rememberedThumbprint(engine: CryptoEngine, principal: string): string {
  const cachedThumbprint = thumbprints.get(principal);
  if (cachedThumbprint !== undefined) return cachedThumbprint;
  const print = thumbprint(engine, principal);
  thumbprints.set(principal, print);
  return print;
}

/**
 * Checks a holder proof (RFC 9449 section 4.3). Never throws. A missing proof is denied as proof_required, and an
 * invalid expectation, such as a negative `now`, as internal_context. Any other fault is denied as invalid_proof,
 * with the faulty part as detail, e.g. `header` or `iat`. `ath`, `ard` and `epk` must be present exactly when the
 * caller expects them. So a proof is valid for only one kind of call.
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
  const cachedHeader = headers.get(parts[0] ?? "");
  const [header, payload] = [cachedHeader ?? readPart(parts[0]), readPart(parts[1])];
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
  if (cachedHeader === undefined && (parts[0] ?? "").length <= MAX_REMEMBERED_HEADER)
    headers.set(parts[0] ?? "", principal);
  const { jti, iat } = payload as { jti: string; iat: number };
  const issuedAt = iat * 1000;
  const times = { issuedAt, expiresAt: issuedAt + window };
  const accepted = { jti, principal, thumbprint: rememberedThumbprint(engine, principal), ...times };
  const isOpening = expected.opens !== undefined;
  return { ok: true, proof: isOpening ? { ...accepted, epk: payload.epk as string } : accepted };
}

/** The two names of the algorithm: RFC 8037's name, and RFC 9864's name for this curve. */
const ALGORITHMS: readonly unknown[] = ["EdDSA", "Ed25519"];

/**
 * Optional members of a public key besides the three required ones, with their valid values (RFC 7517 4, Web
 * Cryptography 15).
 */
const KEY_MEMBERS: Readonly<Record<string, (value: unknown) => boolean>> = {
  kid: (value) => typeof value === "string",
  use: (value) => value === "sig",
  alg: (value) => ALGORITHMS.includes(value),
  key_ops: (value) => Array.isArray(value) && value.every((one) => one === "verify"),
  ext: (value) => typeof value === "boolean",
};

/**
 * Returns the principal of a header that has exactly typ, alg and a public Ed25519 jwk; undefined for any other header.
 * The key may have the optional members of a public key; any other member, such as a private key's `d`, is refused.
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
