import { integer, type ReadTx, row, type WriteTx } from "@depute/store";

const SEQUENCE_ROW = row({ sequence: integer });

/**
 * The kinds of positions in the exchange of revocations with other platforms. `push`: the last entry of this service's
 * log that a peer has received. `poll`: the last entry of a source's list that this service has read.
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
