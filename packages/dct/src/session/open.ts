import { encodeBase64Url } from "@depute/core";
import type { DenialReason } from "../denial.ts";
import type { CryptoEngine } from "../engine.ts";
import { SESSION_LIFETIME_MS } from "../limits.ts";
import { generateKeypair } from "../principal.ts";
import { type AcceptedProof, checkProof, type ProofExpectation, tokenDigest } from "../proof.ts";
import type { Keypair } from "../types.ts";
import { HolderSession } from "./holder-session.ts";
import { type SessionTerms, sessionKey, termsBytes } from "./terms.ts";

/** What a verifier answers to a request for a session: JSON, and no secret. */
export interface SessionGrant {
  id: string;
  /** Milliseconds since 1970. */
  expiresAt: number;
  /** The verifier's key for this session, in the form of a principal id. */
  verifierKey: string;
  /** The verifier's principal and its signature over the terms of the session, where it has a key of its own. */
  signer?: string;
  signature?: string;
}

export interface OpenSessionOptions {
  /** How long the session may live, in milliseconds. */
  readonly lifetimeMs?: number;
  /** When the token expires, in milliseconds since 1970: no session outlives it. */
  readonly notAfter?: number;
  /** The verifier's own key, by which a holder can tell that nobody stands between. */
  readonly verifier?: Keypair;
}

export type OpenedSession =
  | { ok: true; proof: AcceptedProof; session: HolderSession; grant: SessionGrant }
  | { ok: false; denial: DenialReason };

/**
 * Opens a session for whoever made the proof (see requestSession), and never throws. `expected` is what the proof has
 * to be bound to: `opens` is the session's audience, `token` the token that it is for. Denied as checkProof denies.
 *
 * The caller refuses a proof whose jti it has seen, verifies the token with its holder, and keeps the session.
 */
export function openSession(
  engine: CryptoEngine,
  proof: unknown,
  expected: ProofExpectation & { readonly opens: string },
  { lifetimeMs = SESSION_LIFETIME_MS, notAfter, verifier }: OpenSessionOptions = {},
): OpenedSession {
  const { opens: audience, now, token } = expected;
  const isTime = (ms: number | undefined) => ms === undefined || (Number.isSafeInteger(ms) && ms >= 0);
  if (typeof audience !== "string" || audience === "" || !isTime(lifetimeMs) || !isTime(notAfter)) {
    return { ok: false, denial: { type: "internal_context" } };
  }
  const checked = checkProof(engine, proof, expected);
  if (!checked.ok) return checked;
  const { principal, epk = "" } = checked.proof;
  const own = generateKeypair(engine);
  const terms: SessionTerms = {
    id: encodeBase64Url(crypto.getRandomValues(new Uint8Array(16))),
    principal,
    ...(token !== undefined && { ath: tokenDigest(engine, token) }),
    audience,
    expiresAt: Math.floor(Math.min(now + lifetimeMs, notAfter ?? Number.POSITIVE_INFINITY)),
    holderKey: epk,
    verifierKey: own.principal.id,
  };
  const key = sessionKey(engine, own.privateKey, epk, terms);
  own.privateKey.fill(0);
  if (key === undefined) return { ok: false, denial: { type: "invalid_proof", detail: "epk" } };
  const { id, expiresAt, verifierKey } = terms;
  const grant: SessionGrant = { id, expiresAt, verifierKey };
  if (verifier !== undefined) {
    grant.signer = verifier.principal.id;
    grant.signature = encodeBase64Url(engine.sign(termsBytes(terms), verifier.privateKey));
  }
  return { ok: true, proof: checked.proof, session: new HolderSession(engine, terms, key), grant };
}
