import { fromBinary, toBinary } from "@bufbuild/protobuf";
import { type CapMessage, CapMessageSchema } from "@depute/contracts/cap/v1/message_pb";
import { MessageEffect, MessageOrigin } from "@depute/contracts/depute/tasks/v1/message_service_pb";
import {
  bytes,
  FOUND,
  integer,
  memberOf,
  nullable,
  type ReadTx,
  type RowOf,
  row,
  text,
  type WriteTx,
} from "@depute/store";

/** A stored message. The row of a refused message has no content. */
export interface StoredMessage {
  readonly messageId: string;
  readonly rootId: string;
  /** The organization that owns the lineage; empty for none. */
  readonly organization: string;
  /** The message's position in its lineage, starting at 1. */
  readonly number: number;
  readonly taskId: string;
  readonly type: string;
  readonly senderId: string;
  readonly recipientId: string;
  readonly receiveMs: number;
  readonly origin: MessageOrigin;
  readonly effect: MessageEffect;
  /** The code of an error_response or of a refusal; 0 for neither. */
  readonly errorCode: number;
  /** The reason for the refusal; empty for an accepted message. */
  readonly reason: string;
  /** The id of the task whose held result the message contains; empty for none. */
  readonly carries: string;
  /** The timestamp that the sender wrote in the message; undefined for none. */
  readonly claimed: string | undefined;
  readonly message: CapMessage | undefined;
}

/** The columns of a stored message. */
export const MESSAGE_ROW = {
  message_id: text,
  root_id: text,
  organization: text,
  number: integer,
  cap_task_id: text,
  type: text,
  sender_id: text,
  recipient_id: text,
  receive_ms: integer,
  origin: memberOf(MessageOrigin),
  effect: memberOf(MessageEffect),
  error_code: integer,
  reason: text,
  carries: text,
  claimed: nullable(text),
  message: nullable(bytes),
};

const ROW = row(MESSAGE_ROW);
type Row = RowOf<typeof ROW>;

export const MESSAGE_COLUMNS =
  "cap_messages.message_id, root_id, organization, number, cap_task_id, type, sender_id, recipient_id, receive_ms, origin, " +
  "effect, error_code, reason, carries, claimed, message";

export async function insertMessage(tx: WriteTx, stored: StoredMessage): Promise<void> {
  await tx.run(
    `INSERT INTO cap_messages (message_id, root_id, organization, number, cap_task_id, type, sender_id,
       recipient_id, receive_ms, origin, effect, error_code, reason, carries, claimed, message)
     VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
    [
      stored.messageId,
      stored.rootId,
      stored.organization,
      stored.number,
      stored.taskId,
      stored.type,
      stored.senderId,
      stored.recipientId,
      stored.receiveMs,
      stored.origin,
      stored.effect,
      stored.errorCode,
      stored.reason,
      stored.carries,
      stored.claimed ?? null,
      stored.message === undefined ? null : toBinary(CapMessageSchema, stored.message),
    ],
  );
}

export async function readMessage(tx: ReadTx, messageId: string): Promise<StoredMessage | undefined> {
  const row = await tx.get(ROW, `SELECT ${MESSAGE_COLUMNS} FROM cap_messages WHERE message_id = ?`, [
    messageId,
  ]);
  return row && toMessage(row);
}

/** Reads the newest messages of a lineage, ordered oldest first. */
export async function newestMessages(tx: ReadTx, rootId: string, limit: number): Promise<StoredMessage[]> {
  const rows = await tx.all(
    ROW,
    `SELECT ${MESSAGE_COLUMNS} FROM cap_messages WHERE root_id = ? ORDER BY number DESC LIMIT ?`,
    [rootId, limit],
  );
  return rows.reverse().map(toMessage);
}

/** Reads at most `limit` messages on a task that a participant sent or received, with numbers above `after`. */
export async function conversation(
  tx: ReadTx,
  taskId: string,
  agentId: string,
  after: number,
  limit: number,
): Promise<{ position: number; bytes: number; stored: StoredMessage }[]> {
  const rows = await tx.all(
    ROW,
    `SELECT ${MESSAGE_COLUMNS} FROM cap_messages
     WHERE cap_task_id = ? AND number > ? AND message IS NOT NULL AND (sender_id = ? OR EXISTS (
       SELECT 1 FROM cap_inbox WHERE cap_inbox.message_id = cap_messages.message_id AND cap_inbox.agent_id = ?))
     ORDER BY number LIMIT ?`,
    [taskId, after, agentId, agentId, limit],
  );
  return rows.map((row) => ({
    position: row.number,
    bytes: row.message?.length ?? 0,
    stored: toMessage(row),
  }));
}

/** Whether the participant `from` has written to the participant `to` in a lineage. */
export async function hasWritten(tx: ReadTx, rootId: string, from: string, to: string): Promise<boolean> {
  const partyRow = await tx.get(
    FOUND,
    `SELECT 1 FROM cap_messages
     WHERE root_id = ? AND sender_id = ? AND recipient_id = ? AND message IS NOT NULL LIMIT 1`,
    [rootId, from, to],
  );
  return partyRow !== undefined;
}

export function toMessage(row: Row): StoredMessage {
  return {
    messageId: row.message_id,
    rootId: row.root_id,
    organization: row.organization,
    number: row.number,
    taskId: row.cap_task_id,
    type: row.type,
    senderId: row.sender_id,
    recipientId: row.recipient_id,
    receiveMs: row.receive_ms,
    origin: row.origin,
    effect: row.effect,
    errorCode: row.error_code,
    reason: row.reason,
    carries: row.carries,
    claimed: row.claimed ?? undefined,
    message: row.message === null ? undefined : fromBinary(CapMessageSchema, row.message),
  };
}
