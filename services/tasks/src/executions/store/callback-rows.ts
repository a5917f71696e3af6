import type { ReadTx, WriteTx } from "@depute/store";

/** A receipt that its buyer is to be told. */
export interface CallbackRow {
  readonly requestId: string;
  /** The receipt's number. */
  readonly number: number;
  /** Attempts that failed so far. */
  readonly attempts: number;
}

export async function insertCallback(
  tx: WriteTx,
  requestId: string,
  number: number,
  nextMs: number,
): Promise<void> {
  await tx.run(
    "INSERT INTO execution_callbacks (request_id, number, attempts, next_ms) VALUES (?, ?, 0, ?)",
    [requestId, number, nextMs],
  );
}

/** What is due, the longest overdue first; of each request the oldest receipt alone, so that they come in their order. */
export async function dueCallbacks(tx: ReadTx, nowMs: number, limit: number): Promise<CallbackRow[]> {
  return tx.all<CallbackRow>(
    `SELECT c.request_id AS "requestId", c.number, c.attempts FROM execution_callbacks c
     WHERE c.next_ms <= ? AND NOT EXISTS (
       SELECT 1 FROM execution_callbacks b WHERE b.request_id = c.request_id AND b.number < c.number)
     ORDER BY c.next_ms, c.request_id LIMIT ?`,
    [nowMs, limit],
  );
}

/** When something is due next, epoch milliseconds. */
export async function earliestCallback(tx: ReadTx): Promise<number | undefined> {
  const row = await tx.get<{ next_ms: number }>(
    "SELECT next_ms FROM execution_callbacks ORDER BY next_ms, request_id, number LIMIT 1",
  );
  return row?.next_ms;
}

export async function postponeCallback(tx: WriteTx, row: CallbackRow, nextMs: number): Promise<void> {
  await tx.run(
    "UPDATE execution_callbacks SET attempts = attempts + 1, next_ms = ? WHERE request_id = ? AND number = ?",
    [nextMs, row.requestId, row.number],
  );
}

export async function deleteCallback(tx: WriteTx, row: CallbackRow): Promise<void> {
  await tx.run("DELETE FROM execution_callbacks WHERE request_id = ? AND number = ?", [
    row.requestId,
    row.number,
  ]);
}
