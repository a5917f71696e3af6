import { integer, type ReadTx, row, type WriteTx } from "@depute/store";

const POSITION_ROW = row({ position: integer });

/** Returns the sequence up to which this service has read another service's log; 0 before the first read. */
export async function readCursor(tx: ReadTx, name: string): Promise<number> {
  const row = await tx.get(POSITION_ROW, "SELECT position FROM cursors WHERE name = ?", [name]);
  return row?.position ?? 0;
}

export async function writeCursor(tx: WriteTx, name: string, position: number): Promise<void> {
  await tx.run(
    `INSERT INTO cursors (name, position) VALUES (?, ?)
     ON CONFLICT (name) DO UPDATE SET position = excluded.position`,
    [name, position],
  );
}
