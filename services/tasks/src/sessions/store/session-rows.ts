import { fromBinary, toBinary } from "@bufbuild/protobuf";
import { isTerminal, nextDeadlineMs, type Proven, type Session } from "@depute/asp";
import { type Envelope, EnvelopeSchema } from "@depute/contracts/asp/v0/envelope_pb";
import { SessionState } from "@depute/contracts/asp/v0/session_pb";
import { bytes, integer, memberOf, type ReadTx, type RowOf, row, text, type WriteTx } from "@depute/store";

const SESSION_ROW = row({ session: text });
const PARTY_ROW = row({ agent_id: text, principal: text, level: integer, registry_id: text });
const FOUND_MESSAGE_ROW = row({ ordinal: integer, hash: text, state: memberOf(SessionState) });
const SESSION_ID_ROW = row({ session_id: text });
const DEADLINE_MS_ROW = row({ deadline_ms: integer });

/** A party of a session, with the facts about the party when the party joined. */
export interface NewParty {
  readonly agentId: string;
  readonly principal: string;
  readonly level: number;
  readonly registryId: string;
}

/** A stored message. */
export interface MessageRow {
  readonly ordinal: number;
  readonly receiveMs: number;
  /** The session's state after the message. */
  readonly state: SessionState;
  readonly envelope: Envelope;
}

/** Parses a stored session. The JSON needs no validation, because only {@link putSession} writes it. */
function toSession({ session }: RowOf<typeof SESSION_ROW>): Session {
  return JSON.parse(session);
}

export async function readSession(tx: ReadTx, sessionId: string): Promise<Session | undefined> {
  const row = await tx.get(SESSION_ROW, "SELECT session FROM sessions WHERE session_id = ?", [sessionId]);
  return row && toSession(row);
}

/**
 * Writes a session. Does not store a deadline that a message moved to a later time, because almost every message
 * moves the silence deadline. So the timekeeper may check a session too early, and then checks it again.
 *
 * @param before the session as stored before a message; absent for a new session, and for the effects of deadlines
 */
export async function putSession(tx: WriteTx, session: Session, before?: Session): Promise<void> {
  const deadlineMs = nextDeadlineMs(session);
  const knownMs = before === undefined ? undefined : nextDeadlineMs(before);
  if (deadlineMs !== undefined && knownMs !== undefined && deadlineMs >= knownMs) {
    await tx.run("UPDATE sessions SET session = ? WHERE session_id = ?", [
      JSON.stringify(session),
      session.sessionId,
    ]);
    return;
  }
  await tx.run(
    `INSERT INTO sessions (session_id, organization, create_ms, deadline_ms, outcome_due, session)
     VALUES (?, ?, ?, ?, ?, ?)
     ON CONFLICT (session_id) DO UPDATE SET deadline_ms = excluded.deadline_ms,
       outcome_due = excluded.outcome_due, session = excluded.session`,
    [
      session.sessionId,
      session.organization ?? "",
      session.createMs,
      deadlineMs ?? null,
      isTerminal(session.state) ? 1 : 0,
      JSON.stringify(session),
    ],
  );
}

/** Returns ended sessions whose outcome the registry does not have yet. */
export async function sessionsToReport(tx: ReadTx, limit: number): Promise<Session[]> {
  const rows = await tx.all(
    SESSION_ROW,
    "SELECT session FROM sessions WHERE outcome_due = 1 ORDER BY session_id LIMIT ?",
    [limit],
  );
  return rows.map(toSession);
}

export async function markReported(tx: WriteTx, sessionId: string): Promise<void> {
  await tx.run("UPDATE sessions SET outcome_due = 0 WHERE session_id = ?", [sessionId]);
}

/** Reads present and past participants by URI: principals, trust levels, and ids in the registry. */
export async function readParties(tx: ReadTx, sessionId: string) {
  const rows = await tx.all(
    PARTY_ROW,
    "SELECT agent_id, principal, level, registry_id FROM session_parties WHERE session_id = ?",
    [sessionId],
  );
  return {
    principals: new Map(rows.map(({ agent_id, principal }) => [agent_id, principal])),
    levels: new Map(rows.map(({ agent_id, level }) => [agent_id, level])),
    registryIds: new Map(rows.map(({ agent_id, registry_id }) => [agent_id, registry_id])),
  };
}

export async function putParty(
  tx: WriteTx,
  { sessionId, createMs }: Session,
  { agentId, principal, level, registryId }: NewParty,
): Promise<void> {
  await tx.run(
    `INSERT INTO session_parties (session_id, agent_id, principal, create_ms, level, registry_id)
     VALUES (?, ?, ?, ?, ?, ?)
     ON CONFLICT (session_id, agent_id) DO NOTHING`,
    [sessionId, agentId, principal, createMs, level, registryId],
  );
}

/** A position in the list of an agent's sessions. */
export interface SessionPosition {
  readonly createMs: number;
  readonly sessionId: string;
}

/** Lists sessions of an agent, newest first. */
export async function listSessions(
  tx: ReadTx,
  agentId: string,
  after: SessionPosition | undefined,
  limit: number,
): Promise<Session[]> {
  const from = after ?? { createMs: Number.MAX_SAFE_INTEGER, sessionId: "" };
  const rows = await tx.all(
    SESSION_ROW,
    `SELECT s.session FROM session_parties p JOIN sessions s ON s.session_id = p.session_id
     WHERE p.agent_id = ? AND (p.create_ms < ? OR (p.create_ms = ? AND p.session_id < ?))
     ORDER BY p.create_ms DESC, p.session_id DESC LIMIT ?`,
    [agentId, from.createMs, from.createMs, from.sessionId, limit],
  );
  return rows.map(toSession);
}

const MESSAGE_ROW = row({
  ordinal: integer,
  receive_ms: integer,
  state: memberOf(SessionState),
  envelope: bytes,
});
type StoredMessage = RowOf<typeof MESSAGE_ROW>;

function toRow({ ordinal, receive_ms, state, envelope }: StoredMessage): MessageRow {
  return {
    ordinal,
    receiveMs: receive_ms,
    state,
    envelope: fromBinary(EnvelopeSchema, envelope),
  };
}

export async function readMessages(
  tx: ReadTx,
  sessionId: string,
  after: number,
  limit: number,
): Promise<MessageRow[]> {
  const rows = await tx.all(
    MESSAGE_ROW,
    `SELECT ordinal, receive_ms, state, envelope FROM session_messages
     WHERE session_id = ? AND ordinal > ? ORDER BY ordinal LIMIT ?`,
    [sessionId, after, limit],
  );
  return rows.map(toRow);
}

export async function findMessage(tx: ReadTx, sessionId: string, messageId: string) {
  return tx.get(
    FOUND_MESSAGE_ROW,
    "SELECT ordinal, hash, state FROM session_messages WHERE session_id = ? AND message_id = ?",
    [sessionId, messageId],
  );
}

/**
 * Inserts a message.
 *
 * @returns the message's length in bytes
 */
export async function insertMessage(tx: WriteTx, sessionId: string, row: MessageRow): Promise<number> {
  const { ordinal, receiveMs, state, envelope } = row;
  const bytes = toBinary(EnvelopeSchema, envelope);
  await tx.run(
    `INSERT INTO session_messages (session_id, ordinal, message_id, hash, receive_ms, state, envelope)
     VALUES (?, ?, ?, ?, ?, ?, ?)`,
    [sessionId, ordinal, envelope.messageId, envelope.integrity?.hash ?? "", receiveMs, state, bytes],
  );
  return bytes.length;
}

/**
 * Marks a proof as used.
 *
 * @returns false if the proof was used before
 */
export async function takeProof(tx: WriteTx, { id, expireMs }: Proven): Promise<boolean> {
  const { changes } = await tx.run(
    "INSERT INTO session_proofs (proof_id, expire_ms) VALUES (?, ?) ON CONFLICT (proof_id) DO NOTHING",
    [id, expireMs],
  );
  return changes > 0;
}

/**
 * Deletes expired proofs.
 *
 * @returns the number of deleted proofs
 */
export async function forgetProofs(tx: WriteTx, nowMs: number, limit: number): Promise<number> {
  const { changes } = await tx.run(
    `DELETE FROM session_proofs WHERE proof_id IN
       (SELECT proof_id FROM session_proofs WHERE expire_ms < ? ORDER BY expire_ms LIMIT ?)`,
    [nowMs, limit],
  );
  return changes;
}

/** Lists the ids of sessions whose next deadline has passed. */
export async function dueSessions(tx: ReadTx, nowMs: number, limit: number): Promise<string[]> {
  const rows = await tx.all(
    SESSION_ID_ROW,
    `SELECT session_id FROM sessions WHERE deadline_ms IS NOT NULL AND deadline_ms <= ?
     ORDER BY deadline_ms, session_id LIMIT ?`,
    [nowMs, limit],
  );
  return rows.map(({ session_id }) => session_id);
}

export async function earliestSessionDeadline(tx: ReadTx): Promise<number | undefined> {
  const row = await tx.get(
    DEADLINE_MS_ROW,
    "SELECT deadline_ms FROM sessions WHERE deadline_ms IS NOT NULL ORDER BY deadline_ms LIMIT 1",
  );
  return row?.deadline_ms;
}
