import { encodeBase64Url } from "@depute/core";
import type { CryptoEngine, Keypair, RevocationEntry } from "@depute/dct";
import type { KeyStatement } from "./key-revocation.ts";
import { isTaggedBy, signTagged, taggedDigest } from "./tagged.ts";

/** The head of an empty log. */
export const NO_HEAD = "";

/** The signed length and head digest of the revocation log. */
export interface Checkpoint {
  readonly sequence: number;
  readonly head: string;
  /** The time of signing, RFC 3339 UTC. */
  readonly signedAt: string;
  readonly signer: string;
  readonly signature: string;
}

/** The content of one entry of the log. */
export type LogContent = { readonly entry: RevocationEntry } | { readonly key: KeyStatement };

/** Returns the digest of one entry, base64url. */
export function contentDigest(engine: CryptoEngine, sequence: number, content: LogContent): string {
  return encodeBase64Url(taggedDigest(engine, "logentry", { sequence, ...content }));
}

/** Returns the log's head after one more entry. The head is a digest over all entries so far, in order. */
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

/** Whether the expected principal signed a checkpoint. */
export function isSignedCheckpoint(engine: CryptoEngine, checkpoint: Checkpoint, signer: string): boolean {
  const { signature, ...body } = checkpoint;
  return body.signer === signer && isTaggedBy(engine, "checkpoint", body, signer, signature);
}

/**
 * Whether the log continues the state that a reader has. The log must not be shorter, and must have the same
 * head at the reader's sequence.
 *
 * @param headThen the log's head at that sequence; undefined when the log is shorter
 */
export function isContinued(
  knownHead: Pick<Checkpoint, "sequence" | "head">,
  headThen: string | undefined,
): boolean {
  return knownHead.sequence === 0 || headThen === knownHead.head;
}

/** Parses the text of a checkpoint, whose signature is not checked; undefined for another text. */
export function parseCheckpoint(text: string): Checkpoint | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null ? (value as Checkpoint) : undefined;
  } catch {
    return undefined;
  }
}
