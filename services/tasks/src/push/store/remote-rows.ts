import type { ReadTx, WriteTx } from "@depute/store";

/** Work of a task that was handed over at its agent's endpoint, and has not ended there as far as is known. */
export interface Remote {
  /** The id that it has there. */
  readonly remoteId: string;
  readonly taskId: string;
  /** The agent's address when it was handed over. */
  readonly endpoint: string;
  /** What it was handed over with beside the task's own content, as JSON: the same again names the same work. */
  readonly terms: string;
  /** The last event that was relayed; empty where none was, or the endpoint does not number them. */
  readonly lastEventId: string;
}

/** A cancellation that the endpoint has still to be told. */
export interface OwedCancel extends Remote {
  readonly reason: string;
  /** How often it was tried. */
  readonly tries: number;
}

interface Row {
  remote_id: string;
  task_id: string;
  endpoint: string;
  terms: string;
  last_event_id: string;
  reason: string;
  tries: number;
}

const COLUMNS = "remote_id, task_id, endpoint, terms, last_event_id, reason, tries";

/** The work of a task that may still go on at an endpoint; what is to be cancelled there is none. */
export async function openRemote(tx: ReadTx, taskId: string): Promise<Remote | undefined> {
  const row = await tx.get<Row>(`SELECT ${COLUMNS} FROM push_remotes WHERE task_id = ? AND owed_ms IS NULL`, [
    taskId,
  ]);
  return row && toRemote(row);
}

export async function insertRemote(tx: WriteTx, remote: Remote): Promise<void> {
  const { remoteId, taskId, endpoint, terms, lastEventId } = remote;
  await tx.run(
    "INSERT INTO push_remotes (remote_id, task_id, endpoint, terms, last_event_id) VALUES (?, ?, ?, ?, ?)",
    [remoteId, taskId, endpoint, terms, lastEventId],
  );
}

export async function noteEvent(tx: WriteTx, remoteId: string, lastEventId: string): Promise<void> {
  await tx.run("UPDATE push_remotes SET last_event_id = ? WHERE remote_id = ?", [lastEventId, remoteId]);
}

export async function deleteRemote(tx: WriteTx, remoteId: string): Promise<void> {
  await tx.run("DELETE FROM push_remotes WHERE remote_id = ?", [remoteId]);
}

/** Forgets a task's work that is over with it. */
export async function deleteOpenRemote(tx: WriteTx, taskId: string): Promise<void> {
  await tx.run("DELETE FROM push_remotes WHERE task_id = ? AND owed_ms IS NULL", [taskId]);
}

/** The endpoint is to be told that a task's work there is called off. */
export async function oweCancel(tx: WriteTx, taskId: string, reason: string, nowMs: number): Promise<void> {
  await tx.run("UPDATE push_remotes SET owed_ms = ?, reason = ? WHERE task_id = ? AND owed_ms IS NULL", [
    nowMs,
    reason,
    taskId,
  ]);
}

/** Up to `limit` cancellations whose time has come. */
export async function dueCancels(tx: ReadTx, nowMs: number, limit: number): Promise<OwedCancel[]> {
  const rows = await tx.all<Row>(
    `SELECT ${COLUMNS} FROM push_remotes WHERE owed_ms IS NOT NULL AND owed_ms <= ? ORDER BY owed_ms LIMIT ?`,
    [nowMs, limit],
  );
  return rows.map((row) => ({ ...toRemote(row), reason: row.reason, tries: row.tries }));
}

/** When the first cancellation is due, epoch milliseconds. */
export async function nextCancelMs(tx: ReadTx): Promise<number | undefined> {
  const row = await tx.get<{ owed_ms: number }>(
    "SELECT owed_ms FROM push_remotes WHERE owed_ms IS NOT NULL ORDER BY owed_ms LIMIT 1",
  );
  return row?.owed_ms;
}

/** Tries a cancellation again at a later time. */
export async function postponeCancel(tx: WriteTx, remoteId: string, atMs: number): Promise<void> {
  await tx.run("UPDATE push_remotes SET owed_ms = ?, tries = tries + 1 WHERE remote_id = ?", [
    atMs,
    remoteId,
  ]);
}

function toRemote({ remote_id, task_id, endpoint, terms, last_event_id }: Row): Remote {
  return { remoteId: remote_id, taskId: task_id, endpoint, terms, lastEventId: last_event_id };
}
