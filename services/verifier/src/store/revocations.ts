import { integer, type ReadTx, row, text, type WriteTx } from "@depute/store";

/** The record of a block's revocation. */
export interface RevocationRow {
  revocationId: string;
  revokedBy: string;
  /** The time at which the tokens service recorded the revocation, in epoch milliseconds. */
  time: number;
}

const REVOCATION_ROW = row<RevocationRow>({ revocationId: text, revokedBy: text, time: integer });

export async function insertRevocation(tx: WriteTx, row: RevocationRow): Promise<void> {
  const { revocationId, revokedBy, time } = row;
  await tx.run(
    `INSERT INTO revocations (revocation_id, revoked_by, record_ms) VALUES (?, ?, ?)
     ON CONFLICT (revocation_id, revoked_by) DO NOTHING`,
    [revocationId, revokedBy, time],
  );
}

export function revocationsOf(tx: ReadTx, revocationId: string): Promise<RevocationRow[]> {
  return tx.all(
    REVOCATION_ROW,
    `SELECT revocation_id AS "revocationId", revoked_by AS "revokedBy", record_ms AS "time"
     FROM revocations WHERE revocation_id = ?`,
    [revocationId],
  );
}
