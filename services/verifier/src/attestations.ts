import { CanonicalError, DeputeError, ErrorReason, encodeBase64Url, invalid } from "@depute/core";
import type { CryptoEngine } from "@depute/dct";
import type { ReadTx, Store, WriteTx } from "@depute/store";
import type { By, Checker } from "./checker/checker.ts";
import type { Attestation } from "./rules/documents.ts";
import { firstMissing, getAttestation, insertAttestation } from "./store/attestations.ts";
import { pendingDigest } from "./store/completions.ts";
import type { StoredDocument } from "./store/documents.ts";
import type { TransparencyLog } from "./transparency-log.ts";

/** @throws DeputeError ATTESTATION_NOT_FOUND */
export async function readAttestation(
  store: Store,
  id: string,
): Promise<{ attestation: Attestation; storeTime: number }> {
  const row = await store.read((tx) => getAttestation(tx, id));
  if (row === undefined) throw attestationNotFound(id);
  return { attestation: JSON.parse(row.document) as Attestation, storeTime: row.storeTime };
}

/**
 * Stores an attestation and appends it to the log, unless it is there already. Its children are, so no attestation can be among its own.
 *
 * @throws DeputeError ATTESTATION_EXISTS, ATTESTATION_NOT_FOUND (a child)
 */
export async function saveAttestation(
  tx: WriteTx,
  log: TransparencyLog,
  wanted: StoredDocument,
  attestation: Attestation,
): Promise<StoredDocument> {
  const known = await requireRoom(tx, wanted, attestation);
  if (known !== undefined) return known;
  const logIndex = await log.append(tx, "attestation", wanted.document);
  await insertAttestation(tx, wanted, attestation, logIndex);
  return wanted;
}

/**
 * Makes sure that an attestation can be stored.
 *
 * @returns the same attestation if it is stored already
 * @throws DeputeError ATTESTATION_EXISTS, ATTESTATION_NOT_FOUND (a child)
 */
export async function requireRoom(
  tx: ReadTx,
  { id, digest }: Pick<StoredDocument, "id" | "digest">,
  { childAttestations }: Attestation,
): Promise<StoredDocument | undefined> {
  const known = await getAttestation(tx, id);
  if (known?.digest === digest) return known;
  const taken = known?.digest ?? (await pendingDigest(tx, id));
  if (taken !== undefined && taken !== digest) {
    throw new DeputeError(ErrorReason.ATTESTATION_EXISTS, "the id is another attestation's", {
      metadata: { attestation: id },
    });
  }
  const missing = await firstMissing(tx, childAttestations);
  if (missing !== undefined) throw attestationNotFound(missing);
  return undefined;
}

export function attestationNotFound(id: string): DeputeError {
  return new DeputeError(ErrorReason.ATTESTATION_NOT_FOUND, "no such attestation", {
    metadata: { attestation: id },
  });
}

/** An output in the form in which it is hashed and compared. */
export interface CanonicalOutput {
  canonical: string;
  /**
   * base64url of BLAKE2b-256 of it: its outputHash. Depute's choice: DelegateOS 7.1 names no form, and only a canonical
   * one gives equal outputs equal hashes.
   */
  hash: string;
}

/**
 * @param text JSON of the output
 * @throws DeputeError INVALID_REQUEST naming the field, for what has no canonical form
 */
export async function canonicalOutput(
  { engine, checker }: { engine: CryptoEngine; checker: Pick<Checker, "canonical"> },
  text: string,
  by: By = {},
  field = "output",
): Promise<CanonicalOutput> {
  try {
    const canonical = await checker.canonical(text, by, field);
    return { canonical, hash: encodeBase64Url(engine.blake2b256(Buffer.from(canonical))) };
  } catch (error) {
    if (error instanceof CanonicalError) throw invalid(field, error.message);
    throw error;
  }
}
