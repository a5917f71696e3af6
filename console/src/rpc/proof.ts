import { decodeBase64Url } from "@depute/core";
import { createProof, keypairFromSeed, portableEngine } from "@depute/dct";
import type { Credentials } from "./credentials.ts";

/**
 * Returns the headers that prove possession of the caller's key for one call. (RFC 9449)
 *
 * @param target the address of the call
 * @throws RangeError for a seed that is not 32 bytes in base64url
 */
export function proofHeaders(
  { seed, token }: Extract<Credentials, { kind: "key" }>,
  target: string,
): Record<string, string> {
  const bytes = decodeBase64Url(seed.trim());
  if (bytes?.length !== 32)
    throw new RangeError("the key is not valid: enter its seed, 32 bytes in base64url");
  const keypair = keypairFromSeed(portableEngine, bytes);
  const claims = { htm: "POST", htu: target };
  const dpop = createProof(portableEngine, keypair, token === "" ? claims : { ...claims, token });
  return token === "" ? { dpop } : { dpop, authorization: `DPoP ${token}` };
}
