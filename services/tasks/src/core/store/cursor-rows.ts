import type { ReadTx, WriteTx } from "@depute/store";

/** A position in a log of another service; it never goes back. */
export interface Cursor {
  /** The sequence that was seen last; 0 at first. */
  read(tx: ReadTx): Promise<number>;
  advance(tx: WriteTx, sequence: number): Promise<void>;
}

/** The cursor of this name. */
export function cursorOf(name: string): Cursor {
  return {
    async read(tx) {
      const row = await tx.get<{ sequence: number }>("SELECT sequence FROM cursors WHERE name = ?", [name]);
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
