import { integer, type ReadTx, row, type WriteTx } from "@depute/store";

const SEQUENCE_ROW = row({ sequence: integer });

/**
 * The position in another service's log up to which this service has processed the log. The position never
 * decreases.
 */
export interface Cursor {
  /** Returns the last processed sequence; 0 at first. */
  read(tx: ReadTx): Promise<number>;
  advance(tx: WriteTx, sequence: number): Promise<void>;
}

/** Returns the cursor of this name. */
export function cursorOf(name: string): Cursor {
  return {
    async read(tx) {
      const row = await tx.get(SEQUENCE_ROW, "SELECT sequence FROM cursors WHERE name = ?", [name]);
      return row?.sequence ?? 0;
    },
    async advance(tx, sequence) {
      await tx.run(
        `INSERT INTO cursors (name, sequence) VALUES (?, ?)
         ON CONFLICT (name) DO UPDATE SET sequence = excluded.sequence WHERE excluded.sequence > cursors.sequence`,
        [name, sequence],
      );
    },
  };
}
