import { DeputeError, decodeBase64Url, ErrorReason } from "@depute/core";

/** The `typ` of a registration statement, so that no other JWS of the key passes for one. */
export const STATEMENT_TYPE = "depute-registration+jwt";

/** Seconds for which a statement counts, and by which a signer's clock may be ahead. */
export const STATEMENT_LIFE_S = 300;

/** Whether an Ed25519 signature of the message holds under a key. Passed in, because rules import no Node module. */
export type VerifyEd25519 = (signature: Uint8Array, message: Uint8Array, publicKey: Uint8Array) => boolean;

/** What a statement has to say. */
export interface ExpectedStatement {
  readonly agentId: string;
  /** The agent's key in base64url. */
  readonly principal: string;
  readonly digest: string;
  readonly audience: string;
  /** Epoch ms. */
  readonly now: number;
  /** When the record that is replaced last changed, epoch ms; undefined for a new one. */
  readonly recordTime: number | undefined;
}

/**
 * Checks that the agent's key has signed that this record be registered: a JWS (RFC 7515) over exactly this content, for
 * this platform, now. Being bound to the content, it is worth nothing to a thief; being older than the record, it cannot
 * bring an earlier one back.
 *
 * @throws DeputeError SIGNATURE_INVALID naming what is wrong
 */
export function checkStatement(statement: string, expected: ExpectedStatement, verify: VerifyEd25519): void {
  const parts = statement.split(".");
  const [header, claims] = parts.slice(0, 2).map(readObject);
  const signature = decodeBase64Url(parts[2] ?? "");
  const key = decodeBase64Url(expected.principal);
  if (parts.length !== 3 || header === undefined || claims === undefined || signature?.length !== 64) {
    throw refused("is not a JWS in compact form");
  }
  if (header.alg !== "EdDSA") throw refused("must be signed with EdDSA");
  if (header.typ !== STATEMENT_TYPE) throw refused(`must have the typ ${STATEMENT_TYPE}`);
  if (header.crit !== undefined || header.b64 !== undefined)
    throw refused("uses extensions that are not known here");
  const message = new TextEncoder().encode(`${parts[0]}.${parts[1]}`);
  if (key?.length !== 32 || !verify(signature, message, key)) {
    throw refused("is not signed by the agent's principal");
  }
  if (claims.sub !== expected.agentId) throw refused("is about another agent");
  if (claims.aud !== expected.audience) throw refused("is for another platform");
  if (claims.digest !== expected.digest) throw refused("is about another content");
  const { iat } = claims;
  if (typeof iat !== "number" || !Number.isFinite(iat)) throw refused("has no iat");
  const age = expected.now / 1000 - iat;
  if (age > STATEMENT_LIFE_S || age < -STATEMENT_LIFE_S) throw refused("is not of the last 5 minutes");
  if (expected.recordTime !== undefined && iat < Math.floor(expected.recordTime / 1000)) {
    throw refused("is older than the record");
  }
}

function readObject(part: string): Record<string, unknown> | undefined {
  const bytes = decodeBase64Url(part);
  if (bytes === undefined) return undefined;
  try {
    const value: unknown = JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(bytes));
    const isObject = typeof value === "object" && value !== null && !Array.isArray(value);
    return isObject ? (value as Record<string, unknown>) : undefined;
  } catch {
    return undefined;
  }
}

function refused(description: string): DeputeError {
  return new DeputeError(ErrorReason.SIGNATURE_INVALID, `statement: ${description}`, {
    violations: [{ field: "statement", description }],
  });
}
