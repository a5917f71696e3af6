import { fromBinary, toBinary } from "@bufbuild/protobuf";
import { type CapMessage, CapMessageSchema } from "@depute/contracts/cap/v1/message_pb";
import { MessageEffect, MessageOrigin } from "@depute/contracts/depute/tasks/v1/message_service_pb";
import {
  bytes,
  FOUND,
  flag,
  integer,
  memberOf,
  nullable,
  type ReadTx,
  type RowOf,
  row,
  text,
  type WriteTx,
} from "@depute/store";

const LINEAGE_ROW = row({ messages: integer, outside: integer, refusals: integer, organization: text });
const COUNTS_ROW = row({ messages: integer, refusals: integer, organization: text });
const REFUSALS_ROW = row({ refusals: integer });
const SENT_ROW = row({ digest: text, message_id: text });
const MAILBOX_ROW = row({ last_sequence: integer, first_sequence: integer, waiting: integer });
const LAST_SEQUENCE_ROW = row({ last_sequence: integer });
const WAITING_ROW = row({ sequence: integer, message_id: text });
const MESSAGE_ID_ROW = row({ message_id: text });

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

const MESSAGE = {
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
const ROW = row(MESSAGE);
type Row = RowOf<typeof ROW>;
const INBOX_ROW = row({ ...MESSAGE, sequence: integer, acknowledged: flag });

const COLUMNS =
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
  const row = await tx.get(ROW, `SELECT ${COLUMNS} FROM cap_messages WHERE message_id = ?`, [messageId]);
  return row && toMessage(row);
}

/** Reads the newest messages of a lineage, ordered oldest first. */
export async function newestMessages(tx: ReadTx, rootId: string, limit: number): Promise<StoredMessage[]> {
  const rows = await tx.all(
    ROW,
    `SELECT ${COLUMNS} FROM cap_messages WHERE root_id = ? ORDER BY number DESC LIMIT ?`,
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
    `SELECT ${COLUMNS} FROM cap_messages
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

/**
 * Reads a lineage: its owner, and the numbers of all accepted messages, of accepted messages from outside senders, and
 * of refused messages. Returns undefined for an unknown lineage.
 */
export async function readLineage(tx: ReadTx, rootId: string) {
  return tx.get(
    LINEAGE_ROW,
    "SELECT messages, outside, refusals, organization FROM cap_lineages WHERE root_id = ?",
    [rootId],
  );
}

/** The counter that a message increases: participants' messages, outside senders' messages, or refusals. */
export type Counted = "inside" | "outside" | "refused";

/**
 * Counts a message in its lineage.
 *
 * @param organization the owner of the lineage, if this message begins the lineage; empty for none
 * @returns the message's number, and the owner of the lineage
 */
export async function countMessage(
  tx: WriteTx,
  { rootId, organization }: Pick<StoredMessage, "rootId" | "organization">,
  counted: Counted,
  nowMs: number,
): Promise<Pick<StoredMessage, "number" | "organization">> {
  const isRefused = counted === "refused";
  const row = await tx.get(
    COUNTS_ROW,
    `INSERT INTO cap_lineages (root_id, organization, messages, outside, refusals, update_ms)
     VALUES (?, ?, ?, ?, ?, ?)
     ON CONFLICT (root_id) DO UPDATE SET messages = cap_lineages.messages + excluded.messages,
       outside = cap_lineages.outside + excluded.outside, refusals = cap_lineages.refusals + excluded.refusals,
       update_ms = excluded.update_ms
     RETURNING messages, refusals, organization`,
    [rootId, organization, isRefused ? 0 : 1, counted === "outside" ? 1 : 0, isRefused ? 1 : 0, nowMs],
  );
  return {
    number: (row?.messages ?? 0) + (row?.refusals ?? 0),
    organization: row?.organization ?? organization,
  };
}

/** Increases the number of a sender's refusals in a lineage, and returns the new number. */
export async function countRefusal(tx: WriteTx, rootId: string, senderId: string): Promise<number> {
  const row = await tx.get(
    REFUSALS_ROW,
    `INSERT INTO cap_refusals (root_id, sender_id, refusals) VALUES (?, ?, 1)
     ON CONFLICT (root_id, sender_id) DO UPDATE SET refusals = cap_refusals.refusals + 1
     RETURNING refusals`,
    [rootId, senderId],
  );
  return row?.refusals ?? 0;
}

/** Records that a participant takes part in a lineage. */
export async function insertParty(tx: WriteTx, rootId: string, agentId: string): Promise<void> {
  await tx.run("INSERT INTO cap_parties (root_id, agent_id) VALUES (?, ?) ON CONFLICT DO NOTHING", [
    rootId,
    agentId,
  ]);
}

export async function isParty(tx: ReadTx, rootId: string, agentId: string): Promise<boolean> {
  const party = await tx.get(FOUND, "SELECT 1 FROM cap_parties WHERE root_id = ? AND agent_id = ?", [
    rootId,
    agentId,
  ]);
  return party !== undefined;
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

/**
 * Stores the digests of a lineage's tool results, so that participants may attach these results to further messages.
 */
export async function insertToolResults(
  tx: WriteTx,
  rootId: string,
  digests: readonly string[],
): Promise<void> {
  for (const digest of new Set(digests)) {
    await tx.run("INSERT INTO cap_tool_results (root_id, digest) VALUES (?, ?) ON CONFLICT DO NOTHING", [
      rootId,
      digest,
    ]);
  }
}

export async function hasToolResult(tx: ReadTx, rootId: string, digest: string): Promise<boolean> {
  const digestRow = await tx.get(FOUND, "SELECT 1 FROM cap_tool_results WHERE root_id = ? AND digest = ?", [
    rootId,
    digest,
  ]);
  return digestRow !== undefined;
}

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
    `SELECT cap_inbox.sequence, cap_inbox.acknowledged, ${COLUMNS}
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

function toMessage(row: Row): StoredMessage {
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
