import { integer, type ReadTx, row, text, type WriteTx } from "@depute/store";

/** The progress of a sweep. A sweep revokes the blocks that a revoked key signed, in batches. */
export interface KeySweep {
  readonly sequence: number;
  readonly key: string;
  readonly keepBefore: string;
  /** The revocation id of the last block that the sweep has processed; empty before the first block. */
  readonly afterBlock: string;
}

export const KEY_SWEEP_ROW = row<KeySweep>({
  sequence: integer,
  key: text,
  keepBefore: text,
  afterBlock: text,
});

export async function beginSweep(tx: WriteTx, sequence: number): Promise<void> {
  await tx.run("INSERT INTO key_sweeps (sequence, after_block) VALUES (?, '')", [sequence]);
}

export async function firstSweep(tx: ReadTx): Promise<KeySweep | undefined> {
  return tx.get(
    KEY_SWEEP_ROW,
    `SELECT key_sweeps.sequence AS sequence, principal AS "key", keep_before AS keepBefore, after_block AS afterBlock
     FROM key_sweeps JOIN key_revocations ON key_revocations.sequence = key_sweeps.sequence
     ORDER BY key_sweeps.sequence LIMIT 1`,
  );
}

/**
 * Stores the last block that the sweep has processed. If `afterBlock` is undefined, the sweep is finished, and its row
 * is deleted.
 */
export async function moveSweep(
  tx: WriteTx,
  sequence: number,
  afterBlock: string | undefined,
): Promise<void> {
  if (afterBlock === undefined) await tx.run("DELETE FROM key_sweeps WHERE sequence = ?", [sequence]);
  else await tx.run("UPDATE key_sweeps SET after_block = ? WHERE sequence = ?", [afterBlock, sequence]);
}
