import { CanonicalError, DeputeError, ErrorReason, encodeBase64Url, invalid } from "@depute/core";
import type { CryptoEngine } from "@depute/dct";
import { isPurged, type ReadTx, type Store, type WriteTx } from "@depute/store";
import type { CheckCaller, Checker } from "./checker/checker.ts";
import { contractNotFound } from "./contract-book.ts";
import type { Attestation } from "./rules/documents.ts";
import { firstMissing, getAttestation, insertAttestation } from "./store/attestations.ts";
import { pendingDigest } from "./store/completions.ts";
import { contractOwner } from "./store/contracts.ts";
import type { SignedDocument, StoredDocument } from "./store/documents.ts";
import type { TransparencyLog } from "./transparency-log.ts";

/**
 * Reads a stored attestation.
 *
 * @throws DeputeError ATTESTATION_NOT_FOUND
 */
export async function readAttestation(
  store: Store,
  id: string,
): Promise<{ attestation: Attestation; storeTime: number; organization: string }> {
  const row = await store.read((tx) => getAttestation(tx, id));
  if (row === undefined) throw attestationNotFound(id);
  const { document, storeTime, organization } = row;
  return { attestation: JSON.parse(document) as Attestation, storeTime, organization };
}

/**
 * Stores an attestation and appends it to the transparency log. If an equal attestation is stored, returns that one. An
 * attestation can name only stored attestations as children, so no attestation is its own descendant.
 *
 * @throws DeputeError ATTESTATION_EXISTS, ATTESTATION_NOT_FOUND (a child), CONTRACT_NOT_FOUND, LIMIT_EXCEEDED
 */
export async function storeAttestation(
  tx: WriteTx,
  log: TransparencyLog,
  signed: SignedDocument,
  attestation: Attestation,
): Promise<StoredDocument> {
  const storable = await requireStorable(tx, signed, attestation);
  if (storable !== undefined) return storable;
  const contract = await contractOwner(tx, attestation.contractId);
  if (contract === undefined) throw contractNotFound(attestation.contractId);
  const logIndex = await log.append(tx, "attestation", signed.document);
  const stored = { ...signed, organization: contract.organization };
  await insertAttestation(tx, stored, attestation, logIndex);
  return stored;
}

/**
 * Requires that an attestation can be stored: no other attestation has its id, and its children are stored.
 *
 * @returns the stored attestation if it equals this one; undefined if this attestation is new
 * @throws DeputeError ATTESTATION_EXISTS, ATTESTATION_NOT_FOUND (a child)
 */
export async function requireStorable(
  tx: ReadTx,
  { id, digest }: Pick<StoredDocument, "id" | "digest">,
  { childAttestations }: Attestation,
): Promise<StoredDocument | undefined> {
  const storedAttestation = await getAttestation(tx, id);
  if (storedAttestation?.digest === digest) return storedAttestation;
  const existingDigest = storedAttestation?.digest ?? (await pendingDigest(tx, id));
  if (existingDigest !== undefined && existingDigest !== digest) {
    throw new DeputeError(ErrorReason.ATTESTATION_EXISTS, "another attestation has this id; use a new id", {
      metadata: { attestation: id },
    });
  }
  if (await isPurged(tx, "attestation", id)) {
    throw new DeputeError(ErrorReason.ATTESTATION_EXISTS, "a purged attestation had this id; use a new id", {
      metadata: { attestation: id },
    });
  }
  const missing = await firstMissing(tx, childAttestations);
  if (missing !== undefined) throw attestationNotFound(missing);
  return undefined;
}

export function attestationNotFound(id: string): DeputeError {
  return new DeputeError(ErrorReason.ATTESTATION_NOT_FOUND, "the attestation does not exist; check the id", {
    metadata: { attestation: id },
  });
}

/** An output as canonical JSON. The service hashes and compares outputs in this form. */
export interface CanonicalOutput {
  canonical: string;
  /**
   * The output's hash in an attestation: base64url of BLAKE2b-256 of the canonical JSON. DelegateOS 7.1 does not say
   * which form of the output is hashed. Depute hashes the canonical form, so that equal outputs have equal hashes.
   */
  hash: string;
}

/**
 * Converts an output to canonical JSON and hashes it.
 *
 * @param text JSON of the output
 * @param field the field that an error names
 * @throws DeputeError INVALID_REQUEST, naming the field, if the text is not JSON or has no canonical form; the other
 * errors of Checker.canonical
 */
export async function canonicalOutput(
  { engine, checker }: { engine: CryptoEngine; checker: Pick<Checker, "canonical"> },
  text: string,
  by: CheckCaller = {},
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
