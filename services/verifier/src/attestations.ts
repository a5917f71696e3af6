import { canonicalBytes, DeputeError, ErrorReason, encodeBase64Url } from "@depute/core";
import type { CryptoEngine } from "@depute/dct";
import type { Store, WriteTx } from "@depute/store";
import type { Attestation } from "./rules/documents.ts";
import { firstMissing, getAttestation, insertAttestation } from "./store/attestations.ts";
import type { StoredDocument } from "./store/documents.ts";

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
 * Stores an attestation, unless it is there already. Its children are, so no attestation can be among its own.
 *
 * @throws DeputeError ATTESTATION_EXISTS, ATTESTATION_NOT_FOUND (a child)
 */
export async function saveAttestation(
  tx: WriteTx,
  wanted: StoredDocument,
  attestation: Attestation,
): Promise<StoredDocument> {
  const known = await getAttestation(tx, wanted.id);
  if (known?.digest === wanted.digest) return known;
  if (known !== undefined) {
    throw new DeputeError(ErrorReason.ATTESTATION_EXISTS, "the id is another attestation's", {
      metadata: { attestation: wanted.id },
    });
  }
  const missing = await firstMissing(tx, attestation.childAttestations);
  if (missing !== undefined) throw attestationNotFound(missing);
  await insertAttestation(tx, wanted, attestation);
  return wanted;
}

export function attestationNotFound(id: string): DeputeError {
  return new DeputeError(ErrorReason.ATTESTATION_NOT_FOUND, "no such attestation", {
    metadata: { attestation: id },
  });
}

/**
 * The outputHash of a value: base64url of BLAKE2b-256 of its canonical JSON. Depute's choice: DelegateOS 7.1 names no
 * form, and only a canonical one gives equal outputs equal hashes.
 *
 * @throws CanonicalError
 */
export function outputHash(engine: CryptoEngine, output: unknown): string {
  return encodeBase64Url(engine.blake2b256(canonicalBytes(output)));
}
