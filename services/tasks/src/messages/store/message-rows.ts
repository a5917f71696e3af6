import { fromBinary, toBinary } from "@bufbuild/protobuf";
import { type CapMessage, CapMessageSchema } from "@depute/contracts/cap/v1/message_pb";
import type { MessageEffect, MessageOrigin } from "@depute/contracts/depute/tasks/v1/message_service_pb";
import type { ReadTx, WriteTx } from "@depute/store";

/** A message as it is kept; one that was refused has no content. */
export interface StoredMessage {
  readonly messageId: string;
  readonly rootId: string;
  /** Its place among all messages of its lineage, from 1. */
  readonly number: number;
  readonly taskId: string;
  readonly type: string;
  readonly senderId: string;
  readonly recipientId: string;
  readonly receiveMs: number;
  readonly origin: MessageOrigin;
  readonly effect: MessageEffect;
  /** Of an error_response, or of the refusal; 0 for neither. */
  readonly errorCode: number;
  /** Why it was refused; empty for one that was not. */
  readonly reason: string;
  /** The task whose held result it carries; empty for none. */
  readonly carries: string;
  /** The timestamp that the sender gave. */
  readonly claimed: string | undefined;
  readonly message: CapMessage | undefined;
}

interface Row {
  message_id: string;
  root_id: string;
  number: number;
  cap_task_id: string;
  type: string;
  sender_id: string;
  recipient_id: string;
  receive_ms: number;
  origin: MessageOrigin;
  effect: MessageEffect;
  error_code: number;
  reason: string;
  carries: string;
  claimed: string | null;
  message: Uint8Array | null;
}

const COLUMNS =
  "cap_messages.message_id, root_id, number, cap_task_id, type, sender_id, recipient_id, receive_ms, origin, effect, " +
  "error_code, reason, carries, claimed, message";

export async function insertMessage(tx: WriteTx, stored: StoredMessage): Promise<void> {
  await tx.run(
    `INSERT INTO cap_messages (message_id, root_id, number, cap_task_id, type, sender_id, recipient_id, receive_ms,
       origin, effect, error_code, reason, carries, claimed, message)
     VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
    [
      stored.messageId,
      stored.rootId,
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
  const row = await tx.get<Row>(`SELECT ${COLUMNS} FROM cap_messages WHERE message_id = ?`, [messageId]);
  return row && toMessage(row);
}

/** The newest messages of a lineage, oldest first. */
export async function newestMessages(tx: ReadTx, rootId: string, limit: number): Promise<StoredMessage[]> {
  const rows = await tx.all<Row>(
    `SELECT ${COLUMNS} FROM cap_messages WHERE root_id = ? ORDER BY number DESC LIMIT ?`,
    [rootId, limit],
  );
  return rows.reverse().map(toMessage);
}

/** Up to `limit` messages on a task that a participant sent or got, after a number. */
export async function conversation(
  tx: ReadTx,
  taskId: string,
  agentId: string,
  after: number,
  limit: number,
): Promise<{ position: number; bytes: number; stored: StoredMessage }[]> {
  const rows = await tx.all<Row>(
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

/** How many messages a lineage has had, how many of these from outside it, and apart from these how many were refused. */
export async function readLineage(tx: ReadTx, rootId: string) {
  return tx.get<{ messages: number; outside: number; refusals: number }>(
    "SELECT messages, outside, refusals FROM cap_lineages WHERE root_id = ?",
    [rootId],
  );
}

/** What a message counts as in its lineage: of a participant, of a sender from outside, or refused. */
export type Counted = "inside" | "outside" | "refused";

/** Counts one more message of a lineage, and gives back its number. */
export async function countMessage(
  tx: WriteTx,
  rootId: string,
  counted: Counted,
  nowMs: number,
): Promise<number> {
  const isRefused = counted === "refused";
  const row = await tx.get<{ messages: number; refusals: number }>(
    `INSERT INTO cap_lineages (root_id, messages, outside, refusals, update_ms) VALUES (?, ?, ?, ?, ?)
     ON CONFLICT (root_id) DO UPDATE SET messages = cap_lineages.messages + excluded.messages,
       outside = cap_lineages.outside + excluded.outside, refusals = cap_lineages.refusals + excluded.refusals,
       update_ms = excluded.update_ms
     RETURNING messages, refusals`,
    [rootId, isRefused ? 0 : 1, counted === "outside" ? 1 : 0, isRefused ? 1 : 0, nowMs],
  );
  return (row?.messages ?? 0) + (row?.refusals ?? 0);
}

/** Counts one more refusal of a sender in a lineage, and gives back how many there are. */
export async function countRefusal(tx: WriteTx, rootId: string, senderId: string): Promise<number> {
  const row = await tx.get<{ refusals: number }>(
    `INSERT INTO cap_refusals (root_id, sender_id, refusals) VALUES (?, ?, 1)
     ON CONFLICT (root_id, sender_id) DO UPDATE SET refusals = cap_refusals.refusals + 1
     RETURNING refusals`,
    [rootId, senderId],
  );
  return row?.refusals ?? 0;
}

/** Notes that a participant has a part in a lineage. */
export async function insertParty(tx: WriteTx, rootId: string, agentId: string): Promise<void> {
  await tx.run("INSERT INTO cap_parties (root_id, agent_id) VALUES (?, ?) ON CONFLICT DO NOTHING", [
    rootId,
    agentId,
  ]);
}

export async function isParty(tx: ReadTx, rootId: string, agentId: string): Promise<boolean> {
  const found = await tx.get("SELECT 1 AS one FROM cap_parties WHERE root_id = ? AND agent_id = ?", [
    rootId,
    agentId,
  ]);
  return found !== undefined;
}

/** Whether one participant has written to another in a lineage. */
export async function hasWritten(tx: ReadTx, rootId: string, from: string, to: string): Promise<boolean> {
  const found = await tx.get(
    `SELECT 1 AS one FROM cap_messages
     WHERE root_id = ? AND sender_id = ? AND recipient_id = ? AND message IS NOT NULL LIMIT 1`,
    [rootId, from, to],
  );
  return found !== undefined;
}

/** Notes results of tools, so that they can be handed on. */
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
  const found = await tx.get("SELECT 1 AS one FROM cap_tool_results WHERE root_id = ? AND digest = ?", [
    rootId,
    digest,
  ]);
  return found !== undefined;
}

/** The message that a sender's request sent, and the digest of what it was. */
export async function findSent(tx: ReadTx, sender: string, requestId: string) {
  return tx.get<{ digest: string; message_id: string }>(
    "SELECT digest, message_id FROM cap_requests WHERE sender = ? AND request_id = ?",
    [sender, requestId],
  );
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

/** A message in an inbox. */
export interface Delivery {
  /** Its sequence in the inbox. */
  readonly position: number;
  /** How long it is, about. */
  readonly bytes: number;
  readonly isAcknowledged: boolean;
  readonly stored: StoredMessage;
}

/** Up to `limit` messages of an inbox after a sequence, in order. */
export async function readInbox(
  tx: ReadTx,
  agentId: string,
  after: number,
  limit: number,
  waitingOnly = false,
): Promise<Delivery[]> {
  const rows = await tx.all<Row & { sequence: number; acknowledged: number }>(
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

/** An inbox: its newest sequence, the first that is kept, and how many messages wait to be acknowledged. */
export async function readMailbox(tx: ReadTx, agentId: string) {
  const row = await tx.get<{ last_sequence: number; first_sequence: number; waiting: number }>(
    "SELECT last_sequence, first_sequence, waiting FROM cap_mailboxes WHERE agent_id = ?",
    [agentId],
  );
  return {
    lastSequence: row?.last_sequence ?? 0,
    firstSequence: row?.first_sequence ?? 1,
    waiting: row?.waiting ?? 0,
  };
}

/** How many messages of a sender wait in an inbox, counted up to a number. */
export async function countWaiting(
  tx: ReadTx,
  agentId: string,
  senderId: string,
  upTo: number,
): Promise<number> {
  const rows = await tx.all(
    `SELECT cap_inbox.sequence FROM cap_inbox JOIN cap_messages ON cap_messages.message_id = cap_inbox.message_id
     WHERE cap_inbox.agent_id = ? AND cap_inbox.acknowledged = 0 AND cap_messages.sender_id = ? LIMIT ?`,
    [agentId, senderId, upTo],
  );
  return rows.length;
}

/** Puts a message into an inbox. */
export async function deliver(tx: WriteTx, agentId: string, messageId: string): Promise<void> {
  const row = await tx.get<{ last_sequence: number }>(
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

/** Messages of an inbox, up to a sequence or of these sequences, that were not acknowledged. */
export async function waitingMessages(
  tx: ReadTx,
  agentId: string,
  upTo: number,
  limit: number,
): Promise<{ sequence: number; message_id: string }[]> {
  return tx.all(
    `SELECT sequence, message_id FROM cap_inbox WHERE agent_id = ? AND sequence <= ? AND acknowledged = 0
     ORDER BY sequence LIMIT ?`,
    [agentId, upTo, limit],
  );
}

/**
 * Notes that a message was read.
 *
 * @returns its id, when it had not been acknowledged; undefined otherwise
 */
export async function acknowledge(
  tx: WriteTx,
  agentId: string,
  sequence: number,
): Promise<string | undefined> {
  const row = await tx.get<{ message_id: string }>(
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
