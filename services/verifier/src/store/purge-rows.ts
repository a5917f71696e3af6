import { MAX_COUNTED_REMAINING, type PurgeTally } from "@depute/service";
import { deleteRows, integer, markPurged, type ReadTx, row, text, type WriteTx } from "@depute/store";

const ID_ROW = row({ id: text });
const RESULT_ROW = row({ id: text, receiptId: text, final: integer });
const ARTIFACT_ROW = row({ digest: text, owner: text, size: integer });
const NUMBER_ROW = row({ number: integer });

/** The SQL condition for the records of an organization. */
const OWN = "organization = ? AND organization <> ''";

/**
 * Deletes an organization's attestations, except attestations whose outcome the registry has not received. The ids of
 * deleted attestations stay taken.
 */
export async function deleteAttestationsOf(
  tx: WriteTx,
  organization: string,
  tally: PurgeTally,
): Promise<void> {
  const rows = await tx.all(
    ID_ROW,
    `SELECT id FROM attestations a WHERE ${OWN}
       AND NOT EXISTS (SELECT 1 FROM trust_outbox o WHERE o.attestation_id = a.id) ORDER BY id LIMIT ?`,
    [organization, Math.max(0, tally.left)],
  );
  for (const { id } of rows) {
    await markPurged(tx, "attestation", id);
    await tx.run("DELETE FROM attestations WHERE id = ?", [id]);
  }
  tally.count("attestations", rows.length);
}

/**
 * Deletes an organization's contracts, beginning with those without sub-contracts. Keeps contracts with stored
 * attestations. The ids of deleted contracts stay taken.
 *
 * @returns the ids of the deleted contracts
 */
export async function deleteContractsOf(
  tx: WriteTx,
  organization: string,
  tally: PurgeTally,
): Promise<string[]> {
  const deleted: string[] = [];
  while (tally.left > 0) {
    const rows = await tx.all(
      ID_ROW,
      `SELECT id FROM contracts c WHERE ${OWN}
         AND NOT EXISTS (SELECT 1 FROM attestations a WHERE a.contract_id = c.id)
         AND NOT EXISTS (SELECT 1 FROM sub_contracts s WHERE s.parent_id = c.id) ORDER BY id LIMIT ?`,
      [organization, tally.left],
    );
    if (rows.length === 0) break;
    for (const { id } of rows) {
      if (!(await deleteJudgementsOf(tx, id, tally))) return deleted;
      await markPurged(tx, "contract", id);
      await tx.run("DELETE FROM sub_contracts WHERE contract_id = ?", [id]);
      await tx.run("DELETE FROM contracts WHERE id = ?", [id]);
      tally.count("contracts", 1);
      deleted.push(id);
    }
  }
  return deleted;
}

/**
 * Deletes the judge results, claims and charges under a contract. Returns false if the purge has reached its limit
 * before the contract.
 */
async function deleteJudgementsOf(tx: WriteTx, contractId: string, tally: PurgeTally): Promise<boolean> {
  for (const { table, keys } of [
    { table: "judgements", keys: ["contract_id", "output_hash", "step"] },
    { table: "judge_claims", keys: ["contract_id", "output_hash", "step"] },
    { table: "judge_charges", keys: ["place"] },
  ]) {
    const rows = { table, keys, where: "contract_id = ?", params: [contractId] };
    tally.count("judgements", await deleteRows(tx, rows, tally.left));
  }
  return tally.left > 0;
}

/** Returns ids of an organization's reviews, beginning with those that wait for a decision. */
export async function reviewsOf(tx: ReadTx, organization: string, limit: number): Promise<string[]> {
  const rows = await tx.all(
    ID_ROW,
    `SELECT id FROM reviews WHERE ${OWN} ORDER BY decision IS NOT NULL, id LIMIT ?`,
    [organization, Math.max(0, limit)],
  );
  return rows.map(({ id }) => id);
}

/**
 * Deletes a review with its changes, readers and inquiries. Stores the highest sequence of all changes, so that no
 * later change gets a used sequence.
 */
export async function deleteReview(tx: WriteTx, id: string): Promise<void> {
  await tx.run(
    `INSERT INTO review_change_floor (id, sequence) SELECT 1, COALESCE(MAX(sequence), 0) FROM review_changes WHERE true
     ON CONFLICT (id) DO UPDATE SET sequence = excluded.sequence
       WHERE excluded.sequence > review_change_floor.sequence`,
  );
  for (const table of ["review_changes", "review_readers", "review_inquiries"]) {
    await tx.run(`DELETE FROM ${table} WHERE review_id = ?`, [id]);
  }
  await tx.run("DELETE FROM reviews WHERE id = ?", [id]);
}

/** Deletes an organization's verification results, except results that the registry has not received. */
export async function deleteResultsOf(tx: WriteTx, organization: string, tally: PurgeTally): Promise<void> {
  const rows = await tx.all(
    RESULT_ROW,
    `SELECT verification_id AS id, receipt_id AS "receiptId", final FROM verification_results r WHERE ${OWN}
       AND NOT EXISTS (SELECT 1 FROM trust_results_outbox o WHERE o.verification_id = r.verification_id)
     ORDER BY verification_id LIMIT ?`,
    [organization, Math.max(0, tally.left)],
  );
  for (const { id, receiptId, final } of rows) {
    await markPurged(tx, "verification", id);
    if (final === 1) await markPurged(tx, "receipt", receiptId);
    await tx.run("DELETE FROM verification_results WHERE verification_id = ?", [id]);
  }
  tally.count("verification results", rows.length);
}

/** Deletes an organization's artifacts, and subtracts their sizes from the usage of the principals that stored them. */
export async function deleteArtifactsOf(tx: WriteTx, organization: string, tally: PurgeTally): Promise<void> {
  const rows = await tx.all(
    ARTIFACT_ROW,
    `DELETE FROM artifacts WHERE digest IN (SELECT digest FROM artifacts WHERE ${OWN} ORDER BY digest LIMIT ?)
     RETURNING digest, owner, length(content) AS size`,
    [organization, Math.max(0, tally.left)],
  );
  for (const { owner, size } of rows) {
    await tx.run("UPDATE artifact_owners SET count = count - 1, bytes = bytes - ? WHERE owner = ?", [
      size,
      owner,
    ]);
    await tx.run("DELETE FROM artifact_owners WHERE owner = ? AND count <= 0", [owner]);
  }
  tally.count("artifacts", rows.length);
}

/**
 * Counts the records of an organization that this purge cannot delete yet, by kind. Stops at MAX_COUNTED_REMAINING.
 */
export async function countRemaining(tx: ReadTx, organization: string): Promise<ReadonlyMap<string, number>> {
  const counts = new Map<string, number>();
  for (const [kind, table] of [
    ["contracts", "contracts"],
    ["attestations", "attestations"],
    ["verification results", "verification_results"],
  ] as const) {
    const counted = await tx.get(
      NUMBER_ROW,
      `SELECT COUNT(*) AS number FROM (SELECT 1 FROM ${table} WHERE ${OWN} LIMIT ?) AS counted`,
      [organization, MAX_COUNTED_REMAINING],
    );
    counts.set(kind, counted?.number ?? 0);
  }
  return counts;
}
