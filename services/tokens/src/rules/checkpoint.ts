import { encodeBase64Url } from "@depute/core";
import type { CryptoEngine, Keypair, RevocationEntry } from "@depute/dct";
import type { KeyStatement } from "./key-revocation.ts";
import { isTaggedBy, signTagged, taggedDigest } from "./tagged.ts";

/** The head of a log that has nothing. */
export const NO_HEAD = "";

/** How far a log went and what it said, signed. */
export interface Checkpoint {
  readonly sequence: number;
  readonly head: string;
  /** RFC 3339 UTC. */
  readonly signedAt: string;
  readonly signer: string;
  readonly signature: string;
}

/** What a place of the log says. */
export type LogContent = { readonly entry: RevocationEntry } | { readonly key: KeyStatement };

/** The digest of one place of the log, base64url. */
export function contentDigest(engine: CryptoEngine, sequence: number, content: LogContent): string {
  return encodeBase64Url(taggedDigest(engine, "logentry", { sequence, ...content }));
}

/** The head after one more place: it stands for everything up to there, in its order. */
export function nextHead(engine: CryptoEngine, head: string, digest: string): string {
  return encodeBase64Url(taggedDigest(engine, "loghead", { head, digest }));
}

/** Signs a state of the log. */
export function signCheckpoint(
  engine: CryptoEngine,
  { sequence, head }: Pick<Checkpoint, "sequence" | "head">,
  signedAt: string,
  root: Keypair,
): Checkpoint {
  const body = { sequence, head, signedAt, signer: root.principal.id };
  return { ...body, signature: signTagged(engine, "checkpoint", body, root) };
}

/** Whether a checkpoint was signed by the principal that a reader expects it of. */
export function isSignedCheckpoint(engine: CryptoEngine, checkpoint: Checkpoint, signer: string): boolean {
  const { signature, ...body } = checkpoint;
  return body.signer === signer && isTaggedBy(engine, "checkpoint", body, signer, signature);
}

/**
 * Whether a log that a reader has seen at `known` may be what it is now: not shorter, and with the same head there.
 *
 * @param headThen the head that the log now has for the known sequence; undefined when it does not go that far
 */
export function isContinued(
  known: Pick<Checkpoint, "sequence" | "head">,
  headThen: string | undefined,
): boolean {
  return known.sequence === 0 || headThen === known.head;
}
