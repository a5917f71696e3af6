import { integer, type ReadTx, type RowOf, row, text, type WriteTx } from "@depute/store";

const OWED_MS_ROW = row({ owed_ms: integer });

/** A task at an agent's endpoint whose end the platform does not know yet. */
export interface Remote {
  /** The platform's id of the task at the endpoint. */
  readonly remoteId: string;
  readonly taskId: string;
  /** The agent's address when the task began at the endpoint. */
  readonly endpoint: string;
  /** The terms of the task as JSON; a repeated call sends them again. */
  readonly terms: string;
  /**
   * The id of the last relayed event; empty before the first event. If the endpoint sends no ids, UNNUMBERED of
   * `delegated.ts`.
   */
  readonly lastEventId: string;
  /** The state of the task at an A2A agent as JSON; empty before the agent's first response, and for NEKTE. */
  readonly peerState: string;
}

/** A cancellation that the endpoint has not acknowledged. */
export interface OwedCancel extends Remote {
  readonly reason: string;
  /** Number of attempts to send the cancellation so far. */
  readonly tries: number;
}

const ROW = row({
  remote_id: text,
  task_id: text,
  endpoint: text,
  terms: text,
  last_event_id: text,
  peer_state: text,
  reason: text,
  tries: integer,
});
type Row = RowOf<typeof ROW>;

const COLUMNS = "remote_id, task_id, endpoint, terms, last_event_id, peer_state, reason, tries";

/** Finds the open task at an endpoint. A task with an owed cancellation is not open. */
export async function openRemote(tx: ReadTx, taskId: string): Promise<Remote | undefined> {
  const row = await tx.get(ROW, `SELECT ${COLUMNS} FROM push_remotes WHERE task_id = ? AND owed_ms IS NULL`, [
    taskId,
  ]);
  return row && toRemote(row);
}

export async function insertRemote(tx: WriteTx, remote: Omit<Remote, "peerState">): Promise<void> {
  const { remoteId, taskId, endpoint, terms, lastEventId } = remote;
  await tx.run(
    "INSERT INTO push_remotes (remote_id, task_id, endpoint, terms, last_event_id) VALUES (?, ?, ?, ?, ?)",
    [remoteId, taskId, endpoint, terms, lastEventId],
  );
}

export async function noteEvent(tx: WriteTx, remoteId: string, lastEventId: string): Promise<void> {
  await tx.run("UPDATE push_remotes SET last_event_id = ? WHERE remote_id = ?", [lastEventId, remoteId]);
}

export async function putPeerState(tx: WriteTx, remoteId: string, peerState: string): Promise<void> {
  await tx.run("UPDATE push_remotes SET peer_state = ? WHERE remote_id = ?", [peerState, remoteId]);
}

export async function deleteRemote(tx: WriteTx, remoteId: string): Promise<void> {
  await tx.run("DELETE FROM push_remotes WHERE remote_id = ?", [remoteId]);
}

/** Deletes the row of the open task at an endpoint, because its work has ended. */
export async function deleteOpenRemote(tx: WriteTx, taskId: string): Promise<void> {
  tx.send("DELETE FROM push_remotes WHERE task_id = ? AND owed_ms IS NULL", [taskId]);
}

/** Records that the platform must cancel a task at its endpoint. */
export async function oweCancel(tx: WriteTx, taskId: string, reason: string, nowMs: number): Promise<void> {
  tx.send("UPDATE push_remotes SET owed_ms = ?, reason = ? WHERE task_id = ? AND owed_ms IS NULL", [
    nowMs,
    reason,
    taskId,
  ]);
}

/** Returns at most `limit` due cancellations. */
export async function dueCancels(tx: ReadTx, nowMs: number, limit: number): Promise<OwedCancel[]> {
  const rows = await tx.all(
    ROW,
    `SELECT ${COLUMNS} FROM push_remotes WHERE owed_ms IS NOT NULL AND owed_ms <= ? ORDER BY owed_ms LIMIT ?`,
    [nowMs, limit],
  );
  return rows.map((row) => ({ ...toRemote(row), reason: row.reason, tries: row.tries }));
}

/** Returns the time in epoch milliseconds at which the next cancellation is due; undefined for none. */
export async function nextCancelMs(tx: ReadTx): Promise<number | undefined> {
  const row = await tx.get(
    OWED_MS_ROW,
    "SELECT owed_ms FROM push_remotes WHERE owed_ms IS NOT NULL ORDER BY owed_ms LIMIT 1",
  );
  return row?.owed_ms;
}

/** Sets the time of the next attempt to send a cancellation. */
export async function postponeCancel(tx: WriteTx, remoteId: string, atMs: number): Promise<void> {
  await tx.run("UPDATE push_remotes SET owed_ms = ?, tries = tries + 1 WHERE remote_id = ?", [
    atMs,
    remoteId,
  ]);
}

function toRemote({ remote_id, task_id, endpoint, terms, last_event_id, peer_state }: Row): Remote {
  const ids = { remoteId: remote_id, taskId: task_id };
  return { ...ids, endpoint, terms, lastEventId: last_event_id, peerState: peer_state };
}
