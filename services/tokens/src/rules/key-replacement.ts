import { canonicalJson, encodeBase64Url } from "@depute/core";

/** The replacement of an agent's key. */
export interface KeyReplacement {
  readonly agentId: string;
  /** The principals of the replaced key (`from`) and of the new key (`to`). */
  readonly from: string;
  readonly to: string;
  /** The platform's public URL. A JWS for this platform is not valid at another platform. */
  readonly audience: string;
  /** The time of the replacement, in epoch milliseconds. */
  readonly now: number;
}

const utf8 = new TextEncoder();

/**
 * Returns the signing input of a key replacement: the header and claims of a JWS (RFC 7515). The replaced key and the
 * new key both sign this text, as proof for the registry. Each JWS is this text, a dot and the signature.
 */
export function replacementInput({ agentId, from, to, audience, now }: KeyReplacement): string {
  const header = { alg: "EdDSA", typ: "depute-key-replacement+jwt" };
  const claims = { sub: agentId, from, to, aud: audience, iat: Math.floor(now / 1000) };
  return [header, claims].map((part) => encodeBase64Url(utf8.encode(canonicalJson(part)))).join(".");
}
