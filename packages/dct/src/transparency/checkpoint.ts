import type { CryptoEngine } from "../engine.ts";
import type { Keypair } from "../types.ts";
import { isTaggedBy, signTagged } from "./tagged.ts";

/** The signed statement of the length (`sequence`) and the head of a platform's revocation log. */
export interface Checkpoint {
  readonly sequence: number;
  readonly head: string;
  /** The time of signing, RFC 3339 UTC. */
  readonly signedAt: string;
  readonly signer: string;
  readonly signature: string;
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

/** Whether the expected principal signed a checkpoint. Never throws for a checkpoint of this form. */
export function isSignedCheckpoint(engine: CryptoEngine, checkpoint: Checkpoint, signer: string): boolean {
  const { signature, ...body } = checkpoint;
  return body.signer === signer && isTaggedBy(engine, "checkpoint", body, signer, signature);
}

/**
 * Signs the number of the last change of a root key at a checkpoint. The signature is a second one beside the
 * checkpoint's own, so that a reader that does not know the number still verifies the checkpoint.
 *
 * @param root the root key that signed the checkpoint
 */
export function signRootChange(
  engine: CryptoEngine,
  { sequence, head, signedAt, signer }: Checkpoint,
  rootChange: number,
  root: Keypair,
): string {
  return signTagged(engine, "checkpoint", { sequence, head, signedAt, signer, rootChange }, root);
}

/** Whether the signer of a checkpoint signed the number of the last change of a root key at this checkpoint. */
export function isSignedRootChange(
  engine: CryptoEngine,
  { sequence, head, signedAt, signer }: Checkpoint,
  rootChange: number,
  signature: string,
): boolean {
  return isTaggedBy(
    engine,
    "checkpoint",
    { sequence, head, signedAt, signer, rootChange },
    signer,
    signature,
  );
}
