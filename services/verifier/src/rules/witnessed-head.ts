import { DeputeError, ErrorReason } from "@depute/core";

/** The state of a log, as the log's signed head states it. */
export interface WitnessedHead {
  /** The principal that signed the head. */
  readonly signer: string;
  /** The number of the log's entries. */
  readonly size: number;
  /** The digest over all entries, base64url. */
  readonly digest: string;
  /** The number of the last change of the platform's root keys; 0 if the head does not state it. */
  readonly rootChange: number;
}

/** The proof that the new head of a log continues the kept head. */
export interface Continuation {
  /** The size of the log at which the proof begins. */
  readonly firstSize: number;
  /** Returns whether the proof is valid from the kept head to the new head. */
  readonly holds: () => boolean;
}

/**
 * Decides whether a signed head replaces the kept head of the same log.
 *
 * @param continuation the proof; absent for a log that has no such proofs: then only the sizes of its heads are
 * compared
 * @param isSuccessor whether a proven succession leads from the signer of the kept head to the signer of the new one
 * @returns `newer` for a head that replaces the kept one, `same` for a head of the same state
 * @throws DeputeError LOG_HEAD_OLDER, LOG_HEAD_CONTRADICTS, LOG_HEAD_MOVED
 */
export function advance(
  kept: WitnessedHead | undefined,
  next: WitnessedHead,
  continuation?: Continuation,
  isSuccessor: () => boolean = () => false,
): "newer" | "same" {
  if (kept === undefined) return "newer";
  const metadata = { size: String(kept.size) };
  const isSameSigner = next.signer === kept.signer;
  if (!isSameSigner && !isSuccessor()) {
    throw new DeputeError(
      ErrorReason.LOG_HEAD_CONTRADICTS,
      "another key signed the kept head; publish with the credentials of the other platform, or ask the operator to delete the record",
      { metadata },
    );
  }
  if (next.size < kept.size) {
    throw new DeputeError(
      ErrorReason.LOG_HEAD_OLDER,
      `the head has ${next.size} entries, and the kept head ${kept.size}; publish the newest head`,
      { metadata },
    );
  }
  if (next.rootChange < kept.rootChange) {
    throw new DeputeError(
      ErrorReason.LOG_HEAD_OLDER,
      `the head states change ${next.rootChange} of the root keys, and the kept head ${kept.rootChange}; publish the newest head`,
      { metadata: { ...metadata, root_change: String(kept.rootChange) } },
    );
  }
  if (next.size === kept.size) {
    // The record must have the new signer and the new root_change, so that later heads continue from them.
    const isSameRoot = isSameSigner && next.rootChange === kept.rootChange;
    if (next.digest === kept.digest) return isSameRoot ? "same" : "newer";
    throw contradiction("the head has the size of the kept head and other entries", metadata);
  }
  if (continuation === undefined) return "newer";
  if (continuation.firstSize !== kept.size) {
    throw new DeputeError(
      ErrorReason.LOG_HEAD_MOVED,
      `the proof begins at ${continuation.firstSize} entries, and the kept head has ${kept.size}; make a proof from there`,
      { metadata },
    );
  }
  if (continuation.holds()) return "newer";
  throw contradiction("the proof does not lead from the kept head to this one", metadata);
}

function contradiction(what: string, metadata: { readonly size: string }): DeputeError {
  return new DeputeError(
    ErrorReason.LOG_HEAD_CONTRADICTS,
    `${what}: two copies of the log differ; look for a restored copy of the platform's data`,
    { metadata },
  );
}
