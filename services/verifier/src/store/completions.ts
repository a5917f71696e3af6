import { integer, nullable, type ReadTx, row, text, type WriteTx } from "@depute/store";
import type { SignedDocument } from "./documents.ts";

const DIGEST_ROW = row({ digest: text });
const NUMBER_ROW = row({ number: integer });

/** A completion that is not finished yet: the tasks service or the tokens service has not decided on it. */
export interface PendingCompletion extends SignedDocument {
  /** The revocation id of the delegation's block. */
  revocationId: string;
  /** JSON of the output, if the attestation contains only the output's hash; null otherwise. */
  output: string | null;
  /** JSON of the contract's check result; null if the attestation states a failure. */
  verification: string | null;
}

const PENDING_COMPLETION_ROW = row<PendingCompletion>({
  id: text,
  digest: text,
  document: text,
  storeTime: integer,
  revocationId: text,
  output: nullable(text),
  verification: nullable(text),
});

const COLUMNS = `attestation_id AS "id", digest, document, revocation_id AS "revocationId", output, verification,
  record_time AS "storeTime"`;

/** Returns the digest of the pending attestation with this id; undefined if no such attestation is pending. */
export async function pendingDigest(tx: ReadTx, id: string): Promise<string | undefined> {
  const row = await tx.get(DIGEST_ROW, "SELECT digest FROM pending_completions WHERE attestation_id = ?", [
    id,
  ]);
  return row?.digest;
}

export async function insertPending(tx: WriteTx, completion: PendingCompletion): Promise<void> {
  const { id, digest, document, revocationId, output, verification, storeTime } = completion;
  await tx.run(
    `INSERT INTO pending_completions
       (attestation_id, digest, document, revocation_id, output, verification, record_time)
     VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT (attestation_id) DO NOTHING`,
    [id, digest, document, revocationId, output, verification, storeTime],
  );
}

export async function countPending(tx: ReadTx): Promise<number> {
  const row = await tx.get(NUMBER_ROW, "SELECT COUNT(*) AS number FROM pending_completions");
  return Number(row?.number ?? 0);
}

/** Returns pending completions, oldest first. */
export function firstPending(tx: ReadTx, limit: number): Promise<PendingCompletion[]> {
  return tx.all(
    PENDING_COMPLETION_ROW,
    `SELECT ${COLUMNS} FROM pending_completions ORDER BY record_time, attestation_id LIMIT ?`,
    [limit],
  );
}

export async function dropPending(tx: WriteTx, id: string): Promise<void> {
  await tx.run("DELETE FROM pending_completions WHERE attestation_id = ?", [id]);
}
