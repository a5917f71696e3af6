import { canonicalJson, encodeBase64Url } from "@depute/core";

/** An agent that goes from one key to another. */
export interface KeyReplacement {
  readonly agentId: string;
  /** Principals. */
  readonly from: string;
  readonly to: string;
  /** The platform's public address. */
  readonly audience: string;
  /** Milliseconds since 1970. */
  readonly now: number;
}

const utf8 = new TextEncoder();

/**
 * What both keys sign so that the registry gives the agent the new one: the header and the claims of a JWS (RFC 7515).
 * Signed by one of them it is `<this>.<signature>`.
 */
export function replacementInput({ agentId, from, to, audience, now }: KeyReplacement): string {
  const header = { alg: "EdDSA", typ: "depute-key-replacement+jwt" };
  const claims = { sub: agentId, from, to, aud: audience, iat: Math.floor(now / 1000) };
  return [header, claims].map((part) => encodeBase64Url(utf8.encode(canonicalJson(part)))).join(".");
}
