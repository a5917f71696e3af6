import { DeputeError, decodeBase64Url, ErrorReason, parseStrictJson } from "@depute/core";

/**
 * Seconds for which a signed statement is valid. Its time may also be ahead of the registry's clock by this number
 * of seconds.
 */
export const STATEMENT_LIFE_S = 300;

/** Verifies an Ed25519 signature. The function is a parameter of the rules, because rules import no Node module. */
export type VerifyEd25519 = (signature: Uint8Array, message: Uint8Array, publicKey: Uint8Array) => boolean;

/** The payload and the signer of a JWS. */
export interface ReadJws {
  readonly claims: Readonly<Record<string, unknown>>;
  /** The signing key in base64url. */
  readonly signer: string;
}

/**
 * Reads a JWS in compact form (RFC 7515) that one of the given Ed25519 keys signed.
 *
 * @param type the required `typ` header, so that a statement cannot be used for another purpose
 * @param keys in base64url
 * @throws DeputeError SIGNATURE_INVALID naming the fault
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
    throw refusedStatement("uses unsupported extensions");
  }
  const message = new TextEncoder().encode(`${parts[0]}.${parts[1]}`);
  const signer = keys.find((key) => {
    const bytes = decodeBase64Url(key);
    return bytes?.length === 32 && verify(signature, message, bytes);
  });
  if (signer === undefined) throw refusedStatement("is not signed by the required key");
  return { claims, signer };
}

/**
 * Requires that the time of a statement differs from `now` by at most {@link STATEMENT_LIFE_S} seconds.
 *
 * @param now epoch milliseconds
 * @returns `iat`, in epoch seconds
 * @throws DeputeError SIGNATURE_INVALID
 */
export function checkFreshness(iat: unknown, now: number): number {
  if (typeof iat !== "number" || !Number.isFinite(iat)) throw refusedStatement("must have a number as iat");
  if (Math.abs(now / 1000 - iat) > STATEMENT_LIFE_S)
    throw refusedStatement("is older than 5 minutes, or its iat is in the future; sign a new statement");
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
