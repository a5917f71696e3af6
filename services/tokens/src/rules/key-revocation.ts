import { encodeBase64Url } from "@depute/core";
import { type CryptoEngine, formatTime, type Keypair, parseTime } from "@depute/dct";
import { isTaggedBy, signTagged, taggedDigest } from "@depute/dct/transparency";

/** A statement that a key's signatures are no longer valid (DelegateOS 13.3). */
export interface KeyStatement {
  readonly key: string;
  /** The time, in RFC 3339, before which a block must have been recorded to stay valid. */
  readonly keepBefore: string;
  readonly revokedBy: string;
  /**
   * The time of the revocation by the revoker's clock, in RFC 3339. The service does not use it to order revocations.
   */
  readonly revokedAt: string;
  readonly signature: string;
}

/** Creates and signs a statement. Times are epoch milliseconds. */
export function signKeyRevocation(
  engine: CryptoEngine,
  { key, keepBefore, now }: { key: string; keepBefore: number; now: number },
  revoker: Keypair,
): KeyStatement {
  const body = {
    ...{ key, keepBefore: formatTime(keepBefore) },
    ...{ revokedBy: revoker.principal.id, revokedAt: formatTime(now) },
  };
  return { ...body, signature: signTagged(engine, "keyrevocation", body, revoker) };
}

/** Whether the statement has a valid signature by the key of its revoker. */
export function isSignedKeyRevocation(engine: CryptoEngine, { signature, ...body }: KeyStatement): boolean {
  return isTaggedBy(engine, "keyrevocation", body, body.revokedBy, signature);
}

/**
 * Returns the id of a key revocation in the log. The id is a digest whose input begins with a tag for key revocations,
 * so it differs from the id of every block.
 */
export function statementId(engine: CryptoEngine, { signature: _, ...body }: KeyStatement): string {
  return encodeBase64Url(taggedDigest(engine, "keyrevocation", body));
}

/** Returns the time of `keepBefore` in epoch milliseconds; undefined if the text is malformed. */
export function keptBefore({ keepBefore }: KeyStatement): number | undefined {
  return parseTime(keepBefore);
}
