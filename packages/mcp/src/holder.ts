import { createHash, randomBytes } from "node:crypto";
import { canonicalBytes, decodeBase64Url, encodeBase64Url } from "@depute/core";
import type { Presentation } from "./presentation.ts";

/** A key that the proxy holds, for a client that has none: it proves possession with it (RFC 9449, RFC 8037). */
export interface HolderKey {
  /** The public key, base64url. */
  readonly principal: string;
  proof(claims: {
    method: string;
    target: string;
    token?: string;
    argumentsDigest?: string;
  }): Promise<string>;
}

/**
 * Reads a private key.
 *
 * @param seed 32 bytes in base64url
 * @throws Error for what is no key
 */
export async function holderKey(seed: string, now: () => number): Promise<HolderKey> {
  const bytes = decodeBase64Url(seed.trim());
  if (bytes?.length !== 32) throw new Error("a key is 32 bytes in base64url");
  const key = await crypto.subtle.importKey("pkcs8", pkcs8(bytes), "Ed25519", true, ["sign"]);
  const { x = "" } = await crypto.subtle.exportKey("jwk", key);
  const header = part({ alg: "EdDSA", jwk: { crv: "Ed25519", kty: "OKP", x }, typ: "dpop+jwt" });
  return {
    principal: x,
    async proof({ method, target, token, argumentsDigest }) {
      const claims = part({
        htm: method,
        htu: target,
        iat: Math.floor(now() / 1000),
        jti: randomBytes(16).toString("base64url"),
        ...(token === undefined ? {} : { ath: createHash("sha256").update(token).digest("base64url") }),
        ...(argumentsDigest === undefined ? {} : { ard: argumentsDigest }),
      });
      const signed = new TextEncoder().encode(`${header}.${claims}`);
      const signature = await crypto.subtle.sign("Ed25519", key, signed);
      return `${header}.${claims}.${encodeBase64Url(new Uint8Array(signature))}`;
    },
  };
}

/** A token whose key the proxy holds: every call gets a proof of its own. */
export function heldToken(token: string, key: HolderKey, audience: string): Presentation {
  return {
    token,
    contractId: "",
    async prove(argumentsDigest) {
      const method = "MCP";
      return {
        jwt: await key.proof({ method, target: audience, token, argumentsDigest }),
        method,
        target: audience,
      };
    },
  };
}

/** RFC 8410: the frame of an Ed25519 seed. */
function pkcs8(seed: Uint8Array): Uint8Array<ArrayBuffer> {
  const frame = [0x30, 0x2e, 2, 1, 0, 0x30, 5, 6, 3, 0x2b, 0x65, 0x70, 4, 0x22, 4, 0x20];
  return new Uint8Array([...frame, ...seed]);
}

function part(value: unknown): string {
  return encodeBase64Url(canonicalBytes(value));
}
