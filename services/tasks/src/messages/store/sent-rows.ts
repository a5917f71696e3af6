import { type ReadTx, row, text, type WriteTx } from "@depute/store";

const SENT_ROW = row({ digest: text, message_id: text });

/** Finds the message with this request id of a sender, and the message's digest. */
export async function findSent(tx: ReadTx, sender: string, requestId: string) {
  return tx.get(SENT_ROW, "SELECT digest, message_id FROM cap_requests WHERE sender = ? AND request_id = ?", [
    sender,
    requestId,
  ]);
}

export async function insertSent(
  tx: WriteTx,
  sender: string,
  requestId: string,
  digest: string,
  messageId: string,
): Promise<void> {
  await tx.run("INSERT INTO cap_requests (sender, request_id, digest, message_id) VALUES (?, ?, ?, ?)", [
    sender,
    requestId,
    digest,
    messageId,
  ]);
}
