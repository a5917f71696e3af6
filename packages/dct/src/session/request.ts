import { decodeBase64Url, systemClock } from "@depute/core";
import { deny } from "../denial.ts";
import type { CryptoEngine } from "../engine.ts";
import { generateKeypair, parsePrincipal } from "../principal.ts";
import { argumentsDigest, createProof, type ProofClaims, tokenDigest } from "../proof.ts";
import type { Keypair } from "../types.ts";
import { writeCallProof } from "./call-proof.ts";
import type { SessionGrant } from "./open.ts";
import { type SessionTerms, sessionKey, termsBytes } from "./terms.ts";

/** The input of a request for a holder session. htm and htu belong to the call that opens the session. */
export type SessionRequestParams = Pick<ProofClaims, "htm" | "htu" | "token" | "now" | "jti"> & {
  audience: string;
};

/**
 * A request for a holder session, usable once. The holder sends `proof` to the verifier, and passes the grant to
 * `accept`.
 */
export interface SessionRequest {
  /** The DPoP proof that opens the holder session. It contains a new public key for the session's key agreement. */
  readonly proof: string;
  /**
   * Accepts the holder session that a verifier granted. If `verifier` names the verifier's principal, the grant
   * must have that principal's signature. Without the signature, a man in the middle could have opened one session
   * with each side. Throws TokenError (invalid_proof) for a grant that is malformed, has a key that is not of prime
   * order, or is not signed by `verifier`.
   */
  accept(grant: SessionGrant, verifier?: string): CallerSession;
}

/**
 * The values to which the proof of one call is bound. `now` is in milliseconds since 1970; the machine's clock when
 * absent.
 */
export type CallClaims = Pick<ProofClaims, "htm" | "htu" | "arguments" | "now">;

/** The holder's side of a holder session: it proves the holder's calls. */
export interface CallerSession {
  readonly terms: SessionTerms;
  /**
   * Returns the proof of the next call, which is valid once. Throws TokenError (invalid_proof) when the holder
   * session has expired, and CanonicalError for arguments that are not JSON.
   */
  prove(claims: CallClaims): string;
}

/**
 * Creates the request for a holder session (see openSession). Its proof shows possession of the keypair once, and
 * names a new key for the key agreement.
 */
export function requestSession(
  engine: CryptoEngine,
  keypair: Keypair,
  { audience, ...claims }: SessionRequestParams,
): SessionRequest {
  const ownKey = generateKeypair(engine);
  const session = { epk: ownKey.principal.id, aud: audience };
  const proof = createProof(engine, keypair, { ...claims, session });
  const { token } = claims;
  return {
    proof,
    accept(grant, verifier) {
      if (!isGrant(grant)) deny("invalid_proof", "grant: form");
      const terms: SessionTerms = {
        id: grant.id,
        principal: keypair.principal.id,
        ...(token !== undefined && { ath: tokenDigest(engine, token) }),
        audience,
        expiresAt: grant.expiresAt,
        holderKey: ownKey.principal.id,
        verifierKey: grant.verifierKey,
      };
      if (verifier !== undefined) assertSigned(engine, terms, grant, verifier);
      const key = sessionKey(engine, ownKey.privateKey, grant.verifierKey, terms);
      return key === undefined ? deny("invalid_proof", "verifierKey") : callerSession(engine, terms, key);
    },
  };
}

function callerSession(engine: CryptoEngine, terms: SessionTerms, key: Uint8Array): CallerSession {
  let counter = 0;
  return {
    terms,
    prove({ htm, htu, now: time = systemClock.now(), ...call }) {
      if (time > terms.expiresAt) deny("invalid_proof", "session expired");
      counter++;
      const ard = call.arguments === undefined ? undefined : argumentsDigest(engine, call.arguments);
      return writeCallProof(engine, key, { id: terms.id, counter, time, htm, htu, ard });
    },
  };
}

function isGrant({ id, expiresAt, verifierKey }: SessionGrant): boolean {
  const hasId = typeof id === "string" && decodeBase64Url(id)?.length === 16;
  return hasId && Number.isSafeInteger(expiresAt) && parsePrincipal(verifierKey) !== undefined;
}

function assertSigned(
  engine: CryptoEngine,
  terms: SessionTerms,
  grant: SessionGrant,
  verifier: string,
): void {
  const key = parsePrincipal(verifier);
  const signature = decodeBase64Url(grant.signature ?? "");
  if (key === undefined || signature === undefined || grant.signer !== verifier) {
    deny("invalid_proof", "grant: not signed by the verifier");
  }
  if (!engine.verify(signature, termsBytes(terms), key)) deny("invalid_proof", "grant: signature");
}
