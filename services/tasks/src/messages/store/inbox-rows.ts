import { FOUND, flag, integer, type ReadTx, row, text, type WriteTx } from "@depute/store";
import { MESSAGE_COLUMNS, MESSAGE_ROW, type StoredMessage, toMessage } from "./message-rows.ts";

const MAILBOX_ROW = row({ last_sequence: integer, first_sequence: integer, waiting: integer });
const LAST_SEQUENCE_ROW = row({ last_sequence: integer });
const WAITING_ROW = row({ sequence: integer, message_id: text });
const MESSAGE_ID_ROW = row({ message_id: text });
const INBOX_ROW = row({ ...MESSAGE_ROW, sequence: integer, acknowledged: flag });

/** A message and its position in an inbox. */
export interface Delivery {
  /** The message's sequence number in the inbox. */
  readonly position: number;
  /** The approximate size of the message in bytes. */
  readonly bytes: number;
  readonly isAcknowledged: boolean;
  readonly stored: StoredMessage;
}

/** Reads at most `limit` messages of an inbox with sequences above `after`, in order. */
export async function readInbox(
  tx: ReadTx,
  agentId: string,
  after: number,
  limit: number,
  waitingOnly = false,
): Promise<Delivery[]> {
  const rows = await tx.all(
    INBOX_ROW,
    `SELECT cap_inbox.sequence, cap_inbox.acknowledged, ${MESSAGE_COLUMNS}
     FROM cap_inbox JOIN cap_messages ON cap_messages.message_id = cap_inbox.message_id
     WHERE cap_inbox.agent_id = ? AND cap_inbox.sequence > ? ${waitingOnly ? "AND cap_inbox.acknowledged = 0" : ""}
     ORDER BY cap_inbox.sequence LIMIT ?`,
    [agentId, after, limit],
  );
  return rows.map((row) => ({
    position: row.sequence,
    bytes: row.message?.length ?? 0,
    isAcknowledged: row.acknowledged === 1,
    stored: toMessage(row),
  }));
}

/**
 * Reads the state of an inbox. The state is the newest sequence, the lowest sequence after the last purged
 * message, and the number of unacknowledged messages.
 */
export async function readMailbox(tx: ReadTx, agentId: string) {
  const row = await tx.get(
    MAILBOX_ROW,
    "SELECT last_sequence, first_sequence, waiting FROM cap_mailboxes WHERE agent_id = ?",
    [agentId],
  );
  return {
    lastSequence: row?.last_sequence ?? 0,
    firstSequence: row?.first_sequence ?? 1,
    waiting: row?.waiting ?? 0,
  };
}

/** Counts a sender's unacknowledged messages in an inbox, up to a limit. */
export async function countWaiting(
  tx: ReadTx,
  agentId: string,
  senderId: string,
  upTo: number,
): Promise<number> {
  const rows = await tx.all(
    FOUND,
    `SELECT 1 FROM cap_inbox JOIN cap_messages ON cap_messages.message_id = cap_inbox.message_id
     WHERE cap_inbox.agent_id = ? AND cap_inbox.acknowledged = 0 AND cap_messages.sender_id = ? LIMIT ?`,
    [agentId, senderId, upTo],
  );
  return rows.length;
}

/** Puts a message into an inbox. */
export async function deliver(tx: WriteTx, agentId: string, messageId: string): Promise<void> {
  const row = await tx.get(
    LAST_SEQUENCE_ROW,
    `INSERT INTO cap_mailboxes (agent_id, last_sequence, first_sequence, waiting) VALUES (?, 1, 1, 1)
     ON CONFLICT (agent_id) DO UPDATE SET last_sequence = cap_mailboxes.last_sequence + 1,
       waiting = cap_mailboxes.waiting + 1
     RETURNING last_sequence`,
    [agentId],
  );
  await tx.run("INSERT INTO cap_inbox (agent_id, sequence, message_id, acknowledged) VALUES (?, ?, ?, 0)", [
    agentId,
    row?.last_sequence ?? 1,
    messageId,
  ]);
}

/** Reads at most `limit` unacknowledged messages of an inbox up to a sequence, in order. */
export async function waitingMessages(
  tx: ReadTx,
  agentId: string,
  upTo: number,
  limit: number,
): Promise<{ sequence: number; message_id: string }[]> {
  return tx.all(
    WAITING_ROW,
    `SELECT sequence, message_id FROM cap_inbox WHERE agent_id = ? AND sequence <= ? AND acknowledged = 0
     ORDER BY sequence LIMIT ?`,
    [agentId, upTo, limit],
  );
}

/**
 * Records that an agent has read a message.
 *
 * @returns the message's id; undefined if the agent had already acknowledged it, or the inbox has no such message
 */
export async function acknowledge(
  tx: WriteTx,
  agentId: string,
  sequence: number,
): Promise<string | undefined> {
  const row = await tx.get(
    MESSAGE_ID_ROW,
    `UPDATE cap_inbox SET acknowledged = 1 WHERE agent_id = ? AND sequence = ? AND acknowledged = 0
     RETURNING message_id`,
    [agentId, sequence],
  );
  if (row === undefined) return undefined;
  await tx.run("UPDATE cap_mailboxes SET waiting = waiting - 1 WHERE agent_id = ?", [agentId]);
  return row.message_id;
}
