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
