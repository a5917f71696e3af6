import { canonicalBytes } from "@depute/core";
import type { CryptoEngine } from "../engine.ts";
import { parsePrincipal } from "../principal.ts";

/** What a session is bound to: all of it goes into the session's key and under the verifier's signature. */
export interface SessionTerms {
  /** 22 characters of base64url. */
  readonly id: string;
  /** Whose session it is: who proved possession when it was opened. */
  readonly principal: string;
  /** tokenDigest of the token that it is for; absent where a caller states who he is and nothing more. */
  readonly ath?: string;
  /** Where it may be used: every call's htu is this address or one below it. */
  readonly audience: string;
  /** Milliseconds since 1970; after it no call is accepted. */
  readonly expiresAt: number;
  /** The keys of both sides for this session alone, in the form of principal ids. */
  readonly holderKey: string;
  readonly verifierKey: string;
}

/** Sets what is derived and signed here apart from everything else that a principal signs. */
const TAG = new TextEncoder().encode("delegateos-session-v1\0");

/** A tag, and the canonical JSON of the terms. */
export function termsBytes(terms: SessionTerms): Uint8Array {
  const { id, principal, ath = null, audience, expiresAt, holderKey, verifierKey } = terms;
  const body = canonicalBytes({ id, principal, ath, audience, expiresAt, holderKey, verifierKey });
  const bytes = new Uint8Array(TAG.length + body.length);
  bytes.set(TAG);
  bytes.set(body, TAG.length);
  return bytes;
}

/**
 * The 32-byte key of a session: what both sides have in common by the keys that they made for it, mixed with the
 * terms, so that a session on other terms has another key. undefined when `otherKey` is no key of prime order.
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
