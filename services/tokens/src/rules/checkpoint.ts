import { encodeBase64Url } from "@depute/core";
import type { CryptoEngine, Keypair, RevocationEntry } from "@depute/dct";
import {
  type Checkpoint,
  isSignedCheckpoint,
  isSignedRootChange,
  signCheckpoint,
  signRootChange,
  signTagged,
  taggedDigest,
} from "@depute/dct/transparency";
import type { KeyStatement } from "./key-revocation.ts";

/** The head of an empty log. */
export const NO_HEAD = "";

/** A checkpoint in the file beside the store. */
export interface FileCheckpoint extends Checkpoint {
  /** The number of the last change of a root key. Absent in the file of an earlier version. */
  readonly rootChange?: number;
}

/** Signs the checkpoint of the file. The signature covers the number of the last change of a root key. */
export function signFileCheckpoint(
  engine: CryptoEngine,
  stated: Pick<Checkpoint, "sequence" | "head" | "signedAt"> & { readonly rootChange: number },
  root: Keypair,
): FileCheckpoint {
  const { sequence, head, signedAt, rootChange } = stated;
  const body = { sequence, head, signedAt, rootChange, signer: root.principal.id };
  return { ...body, signature: signTagged(engine, "checkpoint", body, root) };
}

/** A checkpoint for other parties, such as a witness. */
export interface PublicCheckpoint extends Checkpoint {
  /** The number of the last change of a root key. Absent in a checkpoint of an earlier version. */
  readonly rootChange?: number;
  /** The signer's signature of the checkpoint with `rootChange`. */
  readonly rootChangeSignature?: string;
}

/** Signs the state of the log, and the number of the last change of a root key. */
export function signPublicCheckpoint(
  engine: CryptoEngine,
  stated: Pick<Checkpoint, "sequence" | "head" | "signedAt"> & { readonly rootChange: number },
  root: Keypair,
): Required<PublicCheckpoint> {
  const { signedAt, rootChange } = stated;
  const checkpoint = signCheckpoint(engine, stated, signedAt, root);
  const rootChangeSignature = signRootChange(engine, checkpoint, rootChange, root);
  return { ...checkpoint, rootChange, rootChangeSignature };
}

/** Whether all signatures of a checkpoint are those of its signer. */
export function isSignedByItsSigner(
  engine: CryptoEngine,
  { rootChange = 0, rootChangeSignature = "", ...checkpoint }: PublicCheckpoint,
): boolean {
  if (!isSignedCheckpoint(engine, checkpoint, checkpoint.signer)) return false;
  return rootChange === 0 || isSignedRootChange(engine, checkpoint, rootChange, rootChangeSignature);
}

/** The content of one entry of the log. */
export type LogContent = { readonly entry: RevocationEntry } | { readonly key: KeyStatement };

/** Returns the digest of one entry in base64url. */
export function contentDigest(engine: CryptoEngine, sequence: number, content: LogContent): string {
  return encodeBase64Url(taggedDigest(engine, "logentry", { sequence, ...content }));
}

/** Returns the log's head after one more entry. The head is a digest over all entries of the log, in order. */
export function nextHead(engine: CryptoEngine, head: string, digest: string): string {
  return encodeBase64Url(taggedDigest(engine, "loghead", { head, digest }));
}

/**
 * Whether the log continues the state that a reader knows. The log must not be shorter, and must have the reader's head
 * at the reader's sequence.
 *
 * @param headThen the log's head at that sequence; undefined when the log is shorter
 */
export function isContinued(
  knownHead: Pick<Checkpoint, "sequence" | "head">,
  headThen: string | undefined,
): boolean {
  return knownHead.sequence === 0 || headThen === knownHead.head;
}

/** Parses the text of a checkpoint without a check of its signature; undefined for text that is not a JSON object. */
export function parseCheckpoint(text: string): PublicCheckpoint | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null ? (value as PublicCheckpoint) : undefined;
  } catch {
    return undefined;
  }
}
