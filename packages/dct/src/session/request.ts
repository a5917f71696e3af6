import { decodeBase64Url } from "@depute/core";
import { deny } from "../denial.ts";
import type { CryptoEngine } from "../engine.ts";
import { generateKeypair, parsePrincipal } from "../principal.ts";
import { argumentsDigest, createProof, type ProofClaims, tokenDigest } from "../proof.ts";
import type { Keypair } from "../types.ts";
import { writeCallProof } from "./call-proof.ts";
import type { SessionGrant } from "./open.ts";
import { type SessionTerms, sessionKey, termsBytes } from "./terms.ts";

/** What is asked of a session: htm and htu are those of the call that opens it. */
export type SessionWish = Pick<ProofClaims, "htm" | "htu" | "token" | "now" | "jti"> & { audience: string };

/** A request for a session: the proof goes to the verifier, whose answer is accepted here. Serves once. */
export interface SessionRequest {
  /** A holder proof of the form of every other, with a key for this session in it. */
  readonly proof: string;
  /**
   * The session that a verifier granted. With `verifier`, its principal, only where it has signed the grant: without,
   * who stands between the two can have opened both halves of a session. Throws TokenError (invalid_proof).
   */
  accept(grant: SessionGrant, verifier?: string): CallerSession;
}

/** One call: what its proof is bound to. `now` is milliseconds since 1970, the machine's clock when absent. */
export type CallClaims = Pick<ProofClaims, "htm" | "htu" | "arguments" | "now">;

/** The holder's side of a session. */
export interface CallerSession {
  readonly terms: SessionTerms;
  /** The proof of the next call. Each serves once. Throws TokenError (invalid_proof) when the session has expired. */
  prove(claims: CallClaims): string;
}

/** Asks for a session (see openSession): proves possession of the keypair once, with a new key to agree on another. */
export function requestSession(
  engine: CryptoEngine,
  keypair: Keypair,
  { audience, ...claims }: SessionWish,
): SessionRequest {
  const own = generateKeypair(engine);
  const session = { epk: own.principal.id, aud: audience };
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
        holderKey: own.principal.id,
        verifierKey: grant.verifierKey,
      };
      if (verifier !== undefined) assertSigned(engine, terms, grant, verifier);
      const key = sessionKey(engine, own.privateKey, grant.verifierKey, terms);
      return key === undefined ? deny("invalid_proof", "verifierKey") : callerSession(engine, terms, key);
    },
  };
}

function callerSession(engine: CryptoEngine, terms: SessionTerms, key: Uint8Array): CallerSession {
  let counter = 0;
  return {
    terms,
    prove({ htm, htu, now: time = Date.now(), ...call }) {
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
