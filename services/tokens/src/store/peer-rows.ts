import { integer, type ReadTx, row, type WriteTx } from "@depute/store";

const SEQUENCE_ROW = row({ sequence: integer });

/**
 * The kinds of positions in the exchange of revocations with another platform. `push` is the position in this service's
 * log up to which a peer has received entries. `poll` is the position in a source's list up to which this service has
 * read entries.
 */
export type PeerKind = "push" | "poll";

export async function peerCursor(tx: ReadTx, kind: PeerKind, address: string): Promise<number> {
  const sql = "SELECT sequence FROM peer_cursors WHERE kind = ? AND address = ?";
  return (await tx.get(SEQUENCE_ROW, sql, [kind, address]))?.sequence ?? 0;
}

export async function movePeerCursor(
  tx: WriteTx,
  kind: PeerKind,
  address: string,
  sequence: number,
): Promise<void> {
  await tx.run(
    `INSERT INTO peer_cursors (kind, address, sequence) VALUES (?, ?, ?)
     ON CONFLICT (kind, address) DO UPDATE SET sequence = excluded.sequence`,
    [kind, address, sequence],
  );
}
