import { fromBinary, toBinary } from "@bufbuild/protobuf";
import { type Dispute, DisputeSchema } from "@depute/contracts/asp/v0/dispute_pb";
import type { ReadTx, WriteTx } from "@depute/store";

/** The disputes that were filed in a session, in the order in which they came. */
export async function filedDisputes(tx: ReadTx, sessionId: string, limit: number): Promise<Dispute[]> {
  const rows = await tx.all<{ dispute: Uint8Array }>(
    "SELECT dispute FROM session_disputes WHERE session_id = ? ORDER BY place LIMIT ?",
    [sessionId, limit],
  );
  return rows.map(({ dispute }) => fromBinary(DisputeSchema, dispute));
}

/** @param place counts the disputes of the session, from 1 */
export async function insertDispute(tx: WriteTx, place: number, dispute: Dispute): Promise<void> {
  await tx.run("INSERT INTO session_disputes (session_id, place, dispute_id, dispute) VALUES (?, ?, ?, ?)", [
    dispute.sessionId,
    place,
    dispute.disputeId,
    toBinary(DisputeSchema, dispute),
  ]);
}
