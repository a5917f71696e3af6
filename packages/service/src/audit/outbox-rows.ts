import { bytes, integer, type Migration, type ReadTx, row, text, type WriteTx } from "@depute/store";

/** The tables of a service's undelivered decisions. */
export const migrations: readonly Migration[] = [
  {
    id: 1,
    name: "undelivered decisions",
    sql: `
      CREATE TABLE batches (
        id TEXT NOT NULL PRIMARY KEY,
        create_ms BIGINT NOT NULL,
        request BYTEA NOT NULL           -- RecordAuditDecisionsRequest
      );
      CREATE INDEX batches_by_time ON batches (create_ms, id)`,
  },
];

/** One batch of decisions that the tokens service has not acknowledged. */
export interface BatchRow {
  readonly id: string;
  /** A RecordAuditDecisionsRequest in protobuf's binary form. */
  readonly request: Uint8Array;
}

const BATCH_ROW = row<BatchRow>({ id: text, request: bytes });
const COUNT_ROW = row({ count: integer });

export async function insertBatch(tx: WriteTx, { id, request }: BatchRow, now: number): Promise<void> {
  await tx.run("INSERT INTO batches (id, create_ms, request) VALUES (?, ?, ?)", [id, now, request]);
}

/** Returns at most `limit` batches, the oldest first. */
export function firstBatches(tx: ReadTx, limit: number): Promise<BatchRow[]> {
  return tx.all(BATCH_ROW, "SELECT id, request FROM batches ORDER BY create_ms, id LIMIT ?", [limit]);
}

export async function countBatches(tx: ReadTx): Promise<number> {
  return (await tx.get(COUNT_ROW, "SELECT COUNT(*) AS count FROM batches"))?.count ?? 0;
}

export async function deleteBatch(tx: WriteTx, id: string): Promise<void> {
  await tx.run("DELETE FROM batches WHERE id = ?", [id]);
}
