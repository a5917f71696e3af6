import { integer, type ReadTx, row, text, type WriteTx } from "@depute/store";

export interface ResultRow {
  verificationId: string;
  receiptId: string;
  /** The organization that owns the result; empty without an organization. */
  organization: string;
  /** 1 if the result is a pass or a fail; 0 if it is inconclusive. */
  final: number;
  /** Digest of the whole request. */
  digest: string;
  /** Canonical JSON of the result. */
  document: string;
  logIndex: number;
  recordTime: number;
}

const RESULT_ROW = row<ResultRow>({
  verificationId: text,
  receiptId: text,
  organization: text,
  final: integer,
  digest: text,
  document: text,
  logIndex: integer,
  recordTime: integer,
});

const COLUMNS = `verification_id AS "verificationId", receipt_id AS "receiptId", organization, final, digest, document,
  log_index AS "logIndex", record_ms AS "recordTime"`;

export function getResult(tx: ReadTx, verificationId: string): Promise<ResultRow | undefined> {
  return tx.get(RESULT_ROW, `SELECT ${COLUMNS} FROM verification_results WHERE verification_id = ?`, [
    verificationId,
  ]);
}

export function finalResult(tx: ReadTx, receiptId: string): Promise<ResultRow | undefined> {
  return tx.get(
    RESULT_ROW,
    `SELECT ${COLUMNS} FROM verification_results WHERE receipt_id = ? AND final = 1`,
    [receiptId],
  );
}

/** Returns the results of a receipt, oldest first. */
export function listResults(tx: ReadTx, receiptId: string, size: number): Promise<ResultRow[]> {
  return tx.all(
    RESULT_ROW,
    `SELECT ${COLUMNS} FROM verification_results WHERE receipt_id = ? ORDER BY log_index LIMIT ?`,
    [receiptId, size],
  );
}

export async function insertResult(tx: WriteTx, row: ResultRow): Promise<void> {
  await tx.run(
    `INSERT INTO verification_results
       (verification_id, receipt_id, organization, final, digest, document, log_index, record_ms)
     VALUES (?, ?, ?, ?, ?, ?, ?, ?)`,
    [
      row.verificationId,
      row.receiptId,
      row.organization,
      row.final,
      row.digest,
      row.document,
      row.logIndex,
      row.recordTime,
    ],
  );
}
