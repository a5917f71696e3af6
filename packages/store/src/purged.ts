import { sha256Hex } from "@depute/core/sha256";
import { FOUND } from "./row.ts";
import type { ReadTx, WriteTx } from "./store.ts";

/**
 * Returns the SQL that creates the table of purged ids. The table holds only digests of ids. So a purged id stays
 * taken, although the platform does not store the id itself.
 */
export function purgedTableSql(): string {
  return `
      CREATE TABLE purged_ids (
        kind TEXT NOT NULL,
        digest TEXT NOT NULL,            -- SHA-256 of kind, zero character and id, 64 hexadecimal digits
        PRIMARY KEY (kind, digest)
      )`;
}

/** Records that the record of an id was purged. A repeated call changes nothing. */
export async function markPurged(tx: WriteTx, kind: string, id: string): Promise<void> {
  await tx.run("INSERT INTO purged_ids (kind, digest) VALUES (?, ?) ON CONFLICT DO NOTHING", [
    kind,
    digestOf(kind, id),
  ]);
}

/** Whether the record of an id was purged. */
export async function isPurged(tx: ReadTx, kind: string, id: string): Promise<boolean> {
  const found = await tx.get(FOUND, "SELECT 1 AS found FROM purged_ids WHERE kind = ? AND digest = ?", [
    kind,
    digestOf(kind, id),
  ]);
  return found !== undefined;
}

function digestOf(kind: string, id: string): string {
  return sha256Hex(`${kind}\u0000${id}`);
}
