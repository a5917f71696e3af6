import { fromBinary, toBinary } from "@bufbuild/protobuf";
import { type Dispute, DisputeSchema } from "@depute/contracts/asp/v0/dispute_pb";
import { bytes, type ReadTx, row, type WriteTx } from "@depute/store";

const DISPUTE_ROW = row({ dispute: bytes });

/** Lists the disputes that were filed in a session, oldest first. */
export async function filedDisputes(tx: ReadTx, sessionId: string, limit: number): Promise<Dispute[]> {
  const rows = await tx.all(
    DISPUTE_ROW,
    "SELECT dispute FROM session_disputes WHERE session_id = ? ORDER BY place LIMIT ?",
    [sessionId, limit],
  );
  return rows.map(({ dispute }) => fromBinary(DisputeSchema, dispute));
}

/** @param place position among the disputes of the session, starting at 1 */
export async function insertDispute(tx: WriteTx, place: number, dispute: Dispute): Promise<void> {
  await tx.run("INSERT INTO session_disputes (session_id, place, dispute_id, dispute) VALUES (?, ?, ?, ?)", [
    dispute.sessionId,
    place,
    dispute.disputeId,
    toBinary(DisputeSchema, dispute),
  ]);
}
