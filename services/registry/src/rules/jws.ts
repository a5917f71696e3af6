import { DeputeError, decodeBase64Url, ErrorReason, parseStrictJson } from "@depute/core";

/** Seconds for which a signed statement counts, and by which a signer's clock may be ahead. */
export const STATEMENT_LIFE_S = 300;

/** Whether an Ed25519 signature of the message holds under a key. Passed in, because rules import no Node module. */
export type VerifyEd25519 = (signature: Uint8Array, message: Uint8Array, publicKey: Uint8Array) => boolean;

/** What a JWS said, and whose it is. */
export interface ReadJws {
  readonly claims: Readonly<Record<string, unknown>>;
  /** The key that signed it, in base64url. */
  readonly signer: string;
}

/**
 * Reads a JWS in compact form (RFC 7515) that one of some Ed25519 keys has signed.
 *
 * @param type the header's `typ`, so that no JWS for another purpose passes for this one
 * @param keys in base64url
 * @throws DeputeError SIGNATURE_INVALID naming what is wrong
 */
export function readJws(text: string, type: string, keys: readonly string[], verify: VerifyEd25519): ReadJws {
  const parts = text.split(".");
  const [header, claims] = parts.slice(0, 2).map(readObject);
  const signature = decodeBase64Url(parts[2] ?? "");
  if (parts.length !== 3 || header === undefined || claims === undefined || signature?.length !== 64) {
    throw refusedStatement("is not a JWS in compact form");
  }
  if (header.alg !== "EdDSA") throw refusedStatement("must be signed with EdDSA");
  if (header.typ !== type) throw refusedStatement(`must have the typ ${type}`);
  if (header.crit !== undefined || header.b64 !== undefined) {
    throw refusedStatement("uses extensions that are not known here");
  }
  const message = new TextEncoder().encode(`${parts[0]}.${parts[1]}`);
  const signer = keys.find((key) => {
    const bytes = decodeBase64Url(key);
    return bytes?.length === 32 && verify(signature, message, bytes);
  });
  if (signer === undefined) throw refusedStatement("is not signed by the key that it needs");
  return { claims, signer };
}

/**
 * Checks that a statement was made in the last minutes.
 *
 * @param now epoch ms
 * @returns `iat`, in seconds since the epoch
 * @throws DeputeError SIGNATURE_INVALID
 */
export function checkFreshness(iat: unknown, now: number): number {
  if (typeof iat !== "number" || !Number.isFinite(iat)) throw refusedStatement("has no iat");
  if (Math.abs(now / 1000 - iat) > STATEMENT_LIFE_S) throw refusedStatement("is not of the last 5 minutes");
  return iat;
}

export function refusedStatement(description: string): DeputeError {
  return new DeputeError(ErrorReason.SIGNATURE_INVALID, `statement: ${description}`, {
    violations: [{ field: "statement", description }],
  });
}

function readObject(part: string): Record<string, unknown> | undefined {
  const bytes = decodeBase64Url(part);
  if (bytes === undefined) return undefined;
  try {
    const value = parseStrictJson(new TextDecoder("utf-8", { fatal: true }).decode(bytes));
    const isObject = typeof value === "object" && value !== null && !Array.isArray(value);
    return isObject ? (value as Record<string, unknown>) : undefined;
  } catch {
    return undefined;
  }
}
