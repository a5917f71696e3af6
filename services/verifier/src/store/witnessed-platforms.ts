import { integer, nullable, type ReadTx, row, text, type WriteTx } from "@depute/store";

/**
 * The record of another platform. Each head is the JSON of its message; times are epoch milliseconds. A head and its
 * time are null until the platform publishes the head.
 */
export interface WitnessedRow {
  readonly platform: string;
  readonly logHead: string | null;
  readonly logHeadTime: number | null;
  readonly checkpoint: string | null;
  readonly checkpointTime: number | null;
  readonly createTime: number;
}

const WITNESSED_ROW = row<WitnessedRow>({
  platform: text,
  logHead: nullable(text),
  logHeadTime: nullable(integer),
  checkpoint: nullable(text),
  checkpointTime: nullable(integer),
  createTime: integer,
});

const SELECT = `SELECT platform, log_head AS "logHead", log_head_ms AS "logHeadTime", checkpoint,
  checkpoint_ms AS "checkpointTime", create_ms AS "createTime" FROM witnessed_platforms`;

export function findWitnessed(tx: ReadTx, platform: string): Promise<WitnessedRow | undefined> {
  return tx.get(WITNESSED_ROW, `${SELECT} WHERE platform = ?`, [platform]);
}

/**
 * Returns the record of a platform, and locks it until the end of the transaction. Creates the record if it is missing.
 *
 * @param max maximum number of records; each concurrent transaction of another replica may exceed it by one
 * @returns undefined if the record is missing and `max` records exist
 */
export async function lockWitnessed(
  tx: WriteTx,
  platform: string,
  now: number,
  max: number,
): Promise<WitnessedRow | undefined> {
  await tx.run(
    `INSERT INTO witnessed_platforms (platform, create_ms)
     SELECT ?, ? WHERE (SELECT COUNT(*) FROM witnessed_platforms) < ?
     ON CONFLICT (platform) DO NOTHING`,
    [platform, now, max],
  );
  const lock = tx.dialect === "postgres" ? " FOR UPDATE" : "";
  return tx.get(WITNESSED_ROW, `${SELECT} WHERE platform = ?${lock}`, [platform]);
}

/** Replaces the heads of a record. */
export async function writeWitnessed(tx: WriteTx, record: WitnessedRow): Promise<void> {
  const { platform, logHead, logHeadTime, checkpoint, checkpointTime } = record;
  await tx.run(
    `UPDATE witnessed_platforms SET log_head = ?, log_head_ms = ?, checkpoint = ?, checkpoint_ms = ?
     WHERE platform = ?`,
    [logHead, logHeadTime, checkpoint, checkpointTime, platform],
  );
}

/** Returns the records of platforms after a principal, in the order of the platforms' principals. */
export function listWitnessed(tx: ReadTx, after: string, limit: number): Promise<WitnessedRow[]> {
  return tx.all(WITNESSED_ROW, `${SELECT} WHERE platform > ? ORDER BY platform LIMIT ?`, [after, limit]);
}

/** Deletes a record. Returns true if the record existed. */
export async function deleteWitnessed(tx: WriteTx, platform: string): Promise<boolean> {
  const { changes } = await tx.run("DELETE FROM witnessed_platforms WHERE platform = ?", [platform]);
  return changes > 0;
}
