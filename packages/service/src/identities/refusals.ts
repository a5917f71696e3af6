import { DeputeError, ErrorReason } from "@depute/core";

/** The faults of a presented identity. Clients read them in the metadata `fault` of the error. */
export type IdentityFault =
  | "malformed"
  | "type"
  | "algorithm"
  | "issuer"
  | "issuer_unavailable"
  | "key"
  | "signature"
  | "audience"
  | "claim"
  | "expired"
  | "not_yet_valid"
  | "sender_constrained"
  | "other_key"
  | "replayed"
  | "not_mapped"
  | "no_spiffe_id";

const MESSAGES: Readonly<Record<IdentityFault, string>> = {
  malformed: "the bearer token is not a JSON Web Token with a subject: get a new token",
  type: "the typ of the bearer token is not one of JWT, at+jwt: send an access token",
  algorithm: "the bearer token's algorithm is not accepted from its issuer: sign with an accepted algorithm",
  issuer: "the bearer token's issuer is not trusted by this platform: use a configured issuer",
  issuer_unavailable: "the keys of the bearer token's issuer cannot be read: try again later",
  key: "the issuer has no key of the bearer token's kid: get a new token",
  signature: "the bearer token was not signed by its issuer: get a new token",
  audience: "the bearer token is for another audience: request a token for this platform",
  claim: "a claim of the bearer token is missing or malformed: iss, aud, sub and exp are required",
  expired: "the bearer token has expired: get a new token",
  not_yet_valid: "the bearer token is not valid yet, or was issued in the future: compare the clocks",
  sender_constrained: "the bearer token is bound to a key (cnf): send a token that needs no proof of a key",
  other_key: "the token is bound to another key (cnf): prove that key",
  replayed: "the identity assertion was used before: get a new assertion",
  not_mapped: "the identity is valid, but the platform maps it to no principal: ask the operator to add it",
  no_spiffe_id:
    "the client certificate has no SPIFFE id as its only URI: present another certificate, or other credentials",
};

/** Returns the error for a refused identity. The message states the fault, and quotes nothing of the credential. */
export function identityRefused(fault: IdentityFault, cause?: unknown): DeputeError {
  return new DeputeError(ErrorReason.UNAUTHENTICATED, MESSAGES[fault], {
    metadata: { fault },
    ...(cause !== undefined && { cause }),
  });
}
