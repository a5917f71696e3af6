import { checkFreshness, readJws, refusedStatement as refused, type VerifyEd25519 } from "./jws.ts";

/** The `typ` of a registration statement, so that no other JWS of the key passes for one. */
export const STATEMENT_TYPE = "depute-registration+jwt";

/** The `typ` of a statement by which an agent gets another key. */
export const REPLACEMENT_TYPE = "depute-key-replacement+jwt";

/** What the statements of both keys have to say. */
export interface ExpectedReplacement {
  readonly agentId: string;
  /** The key until now and the new one, in base64url. */
  readonly from: string;
  readonly to: string;
  readonly audience: string;
  /** Epoch ms. */
  readonly now: number;
  /** When the record last changed, epoch ms; undefined where it is not changed any more. */
  readonly recordTime: number | undefined;
}

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
  checkTime(claims.iat, expected);
}

/**
 * Checks that a key has signed that an agent goes from one key to another, on this platform, now.
 *
 * @param signer which of the two keys
 * @throws DeputeError SIGNATURE_INVALID naming what is wrong
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
    throw refused("is older than the record");
}
