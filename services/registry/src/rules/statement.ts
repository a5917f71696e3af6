import { checkFreshness, readJws, refusedStatement as refused, type VerifyEd25519 } from "./jws.ts";

/** The `typ` of a registration statement, so that no other JWS of the same key counts as a registration. */
export const STATEMENT_TYPE = "depute-registration+jwt";

/** The `typ` of a statement that replaces an agent's key. */
export const REPLACEMENT_TYPE = "depute-key-replacement+jwt";

/** The facts with which the statements of both keys are compared. */
export interface ExpectedReplacement {
  readonly agentId: string;
  /** The replaced key (`from`) and the new key (`to`), in base64url. */
  readonly from: string;
  readonly to: string;
  readonly audience: string;
  /** The current time in epoch milliseconds. */
  readonly now: number;
  /**
   * The time of the record's last change, in epoch milliseconds. An older statement is refused. Undefined omits this
   * check.
   */
  readonly recordTime: number | undefined;
}

/** The facts with which a registration statement is compared. */
export interface ExpectedStatement {
  readonly agentId: string;
  /** The agent's key in base64url. */
  readonly principal: string;
  readonly digest: string;
  readonly audience: string;
  /** The current time in epoch milliseconds. */
  readonly now: number;
  /** The time of the last change of the existing record, in epoch milliseconds; undefined for a new agent. */
  readonly recordTime: number | undefined;
}

/**
 * Requires that the agent's key signed this registration: a JWS (RFC 7515) over this content, platform and time. A
 * thief of the statement can register only this content. A statement older than the record is refused, so it cannot
 * restore an earlier record.
 *
 * @throws DeputeError SIGNATURE_INVALID naming the fault
 */
export function checkStatement(statement: string, expected: ExpectedStatement, verify: VerifyEd25519): void {
  const { claims } = readJws(statement, STATEMENT_TYPE, [expected.principal], verify);
  if (claims.sub !== expected.agentId) throw refused("is about another agent");
  if (claims.aud !== expected.audience) throw refused("is for another platform");
  if (claims.digest !== expected.digest) throw refused("is about different content");
  checkTime(claims.iat, expected);
}

/**
 * Requires that a key has recently signed this replacement: a statement for this platform that the key `to` replaces
 * the key `from`.
 *
 * @param signer which of the two keys must have signed
 * @throws DeputeError SIGNATURE_INVALID naming the fault
 */
export function checkReplacement(
  statement: string,
  signer: "from" | "to",
  expected: ExpectedReplacement,
  verify: VerifyEd25519,
): void {
  const { claims } = readJws(statement, REPLACEMENT_TYPE, [expected[signer]], verify);
  if (claims.sub !== expected.agentId) throw refused("is about another agent");
  if (claims.aud !== expected.audience) throw refused("is for another platform");
  if (claims.from !== expected.from || claims.to !== expected.to) throw refused("is about other keys");
  checkTime(claims.iat, expected);
}

function checkTime(
  claimed: unknown,
  { now, recordTime }: Pick<ExpectedStatement, "now" | "recordTime">,
): void {
  const iat = checkFreshness(claimed, now);
  if (recordTime !== undefined && iat < Math.floor(recordTime / 1000))
    throw refused("is older than the record; sign a new statement");
}
