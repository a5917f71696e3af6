import { decodeBase64Url } from "@depute/core";
import { createProof, type Keypair, keypairFromSeed } from "@depute/dct";
import { nativeEngine } from "@depute/dct/native";
import type { Presentation } from "./presentation.ts";

/**
 * Reads a holder's private key. With this key, the proxy creates proofs on the holder's behalf.
 *
 * @param seed 32 bytes in base64url
 * @throws Error for an invalid key
 */
export function holderKey(seed: string): Keypair {
  const bytes = decodeBase64Url(seed.trim());
  if (bytes?.length !== 32) throw new Error("the key must be 32 bytes in base64url");
  return keypairFromSeed(nativeEngine, bytes);
}

/** Presents a token whose key the proxy has. The proxy creates a new proof for every call. */
export function heldToken(token: string, key: Keypair, audience: string, now: () => number): Presentation {
  const method = "MCP";
  return {
    token,
    contractId: "",
    async prove(args) {
      const claims = { htm: method, htu: audience, token, arguments: args, now: now() };
      return { jwt: createProof(nativeEngine, key, claims), method, target: audience };
    },
  };
}
