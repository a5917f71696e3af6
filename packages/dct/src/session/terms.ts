import { canonicalBytes } from "@depute/core";
import type { CryptoEngine } from "../engine.ts";
import { parsePrincipal } from "../principal.ts";

/** The terms of a holder session. The key derivation and the verifier's signature cover all of them. */
export interface SessionTerms {
  /** The holder session's id: 22 characters of base64url. */
  readonly id: string;
  /** The principal that proved possession when the holder session was opened. */
  readonly principal: string;
  /** The tokenDigest of the holder session's token; absent if the session only identifies the caller. */
  readonly ath?: string;
  /**
   * The address for which the holder session is valid. The htu of every call is this address or an address below
   * it.
   */
  readonly audience: string;
  /** The time at which the holder session ends, in milliseconds since 1970. No call is accepted afterwards. */
  readonly expiresAt: number;
  /** The keys of both sides for this holder session alone, in the form of principal ids. */
  readonly holderKey: string;
  readonly verifierKey: string;
}

/** Separates the keys and signatures of holder sessions from a principal's other signatures. */
const TAG = new TextEncoder().encode("delegateos-session-v1\0");

/** Returns the signed bytes: a tag, and the canonical JSON of the terms. */
export function termsBytes(terms: SessionTerms): Uint8Array {
  const { id, principal, ath = null, audience, expiresAt, holderKey, verifierKey } = terms;
  const body = canonicalBytes({ id, principal, ath, audience, expiresAt, holderKey, verifierKey });
  const bytes = new Uint8Array(TAG.length + body.length);
  bytes.set(TAG);
  bytes.set(body, TAG.length);
  return bytes;
}

/**
 * Returns the 32-byte key of a holder session: the shared secret of both sides' ephemeral keys, mixed with the
 * terms. So sessions with different terms have different keys. Returns undefined if `otherKey` is not of prime
 * order.
 */
export function sessionKey(
  engine: CryptoEngine,
  seed: Uint8Array,
  otherKey: string,
  terms: SessionTerms,
): Uint8Array | undefined {
  const key = parsePrincipal(otherKey);
  const shared = key === undefined ? undefined : engine.agree(seed, key);
  if (shared === undefined) return undefined;
  const derived = engine.mac(shared, termsBytes(terms));
  shared.fill(0);
  return derived;
}
