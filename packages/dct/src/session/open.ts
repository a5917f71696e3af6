import { encodeBase64Url, randomBytes } from "@depute/core";
import type { DenialReason } from "../denial.ts";
import type { CryptoEngine } from "../engine.ts";
import { SESSION_LIFETIME_MS } from "../limits.ts";
import { generateKeypair } from "../principal.ts";
import { type AcceptedProof, checkProof, type ProofExpectation, tokenDigest } from "../proof.ts";
import type { Keypair } from "../types.ts";
import { HolderSession } from "./holder-session.ts";
import { type SessionTerms, sessionKey, termsBytes } from "./terms.ts";

/** The verifier's response to a request for a holder session: JSON, without secrets. */
export interface SessionGrant {
  id: string;
  /** The time at which the holder session expires, in milliseconds since 1970. */
  expiresAt: number;
  /** The verifier's key for this holder session, in the form of a principal id. */
  verifierKey: string;
  /**
   * The verifier's principal and its signature over the holder session's terms; absent if `verifier` of the options
   * was absent.
   */
  signer?: string;
  signature?: string;
}

export interface OpenSessionOptions {
  /** Maximum lifetime of the holder session, in milliseconds; SESSION_LIFETIME_MS when absent. */
  readonly lifetimeMs?: number;
  /**
   * The time at which the token expires, in milliseconds since 1970; absent for a holder session without a token.
   * No session outlives its token.
   */
  readonly notAfter?: number;
  /**
   * The verifier's own key. Its signature lets a holder detect a man in the middle. If absent, the grant has no
   * signature.
   */
  readonly verifier?: Keypair;
}

export type OpenedSession =
  | { ok: true; proof: AcceptedProof; session: HolderSession; grant: SessionGrant }
  | { ok: false; denial: DenialReason };

/**
 * Opens a holder session for the proof's principal (see requestSession), and never throws. `expected` has the
 * values to which the proof must be bound: `opens` is the session's audience, `token` the session's token. The
 * denials are those of checkProof. The caller must refuse a proof with a stored jti, verify the token with its
 * holder, and store the session.
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
  const ownKey = generateKeypair(engine);
  const terms: SessionTerms = {
    id: encodeBase64Url(randomBytes(16)),
    principal,
    ...(token !== undefined && { ath: tokenDigest(engine, token) }),
    audience,
    expiresAt: Math.floor(Math.min(now + lifetimeMs, notAfter ?? Number.POSITIVE_INFINITY)),
    holderKey: epk,
    verifierKey: ownKey.principal.id,
  };
  const key = sessionKey(engine, ownKey.privateKey, epk, terms);
  ownKey.privateKey.fill(0);
  if (key === undefined) return { ok: false, denial: { type: "invalid_proof", detail: "epk" } };
  const { id, expiresAt, verifierKey } = terms;
  const grant: SessionGrant = { id, expiresAt, verifierKey };
  if (verifier !== undefined) {
    grant.signer = verifier.principal.id;
    grant.signature = encodeBase64Url(engine.sign(termsBytes(terms), verifier.privateKey));
  }
  return { ok: true, proof: checked.proof, session: new HolderSession(engine, terms, key), grant };
}
