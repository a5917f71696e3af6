import { encodeBase64Url } from "@depute/core";
import { type CryptoEngine, formatTime, type Keypair, parseTime } from "@depute/dct";
import { isTaggedBy, signTagged, taggedDigest } from "./tagged.ts";

/** Says that a key's signatures do not count any more (DelegateOS 13.3). */
export interface KeyStatement {
  readonly key: string;
  /** RFC 3339: blocks that were recorded before it still count. */
  readonly keepBefore: string;
  readonly revokedBy: string;
  /** RFC 3339, by the revoker's clock; it orders nothing. */
  readonly revokedAt: string;
  readonly signature: string;
}

/** A signed statement. Times in milliseconds since 1970. */
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

/** Whether a statement has its revoker's signature. */
export function isSignedKeyRevocation(engine: CryptoEngine, { signature, ...body }: KeyStatement): boolean {
  return isTaggedBy(engine, "keyrevocation", body, body.revokedBy, signature);
}

/** What names a statement in the log: no block has such a digest, since its bytes begin with the statement's tag. */
export function statementId(engine: CryptoEngine, { signature: _, ...body }: KeyStatement): string {
  return encodeBase64Url(taggedDigest(engine, "keyrevocation", body));
}

/** Milliseconds since 1970 before which blocks still count; undefined for what is no time. */
export function keptBefore({ keepBefore }: KeyStatement): number | undefined {
  return parseTime(keepBefore);
}
