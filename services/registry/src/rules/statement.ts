import { checkFreshness, readJws, refusedStatement as refused, type VerifyEd25519 } from "./jws.ts";

/** The `typ` of a registration statement, so that no other JWS of the key passes for one. */
export const STATEMENT_TYPE = "depute-registration+jwt";

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
  const { claims } = readJws(statement, STATEMENT_TYPE, [expected.principal], verify);
  if (claims.sub !== expected.agentId) throw refused("is about another agent");
  if (claims.aud !== expected.audience) throw refused("is for another platform");
  if (claims.digest !== expected.digest) throw refused("is about another content");
  const iat = checkFreshness(claims.iat, expected.now);
  if (expected.recordTime !== undefined && iat < Math.floor(expected.recordTime / 1000)) {
    throw refused("is older than the record");
  }
}
