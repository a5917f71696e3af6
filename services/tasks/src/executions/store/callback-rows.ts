import { integer, type ReadTx, row, text, type WriteTx } from "@depute/store";

const NEXT_MS_ROW = row({ next_ms: integer });

/** A receipt that the platform must send to the buyer's address. */
export interface CallbackRow {
  readonly requestId: string;
  /** The receipt's number. */
  readonly number: number;
  /** Number of failed attempts to send the receipt. */
  readonly attempts: number;
}

const CALLBACK_ROW = row<CallbackRow>({ requestId: text, number: integer, attempts: integer });

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

/**
 * Returns the due callbacks, the longest overdue first. Selects only the oldest unsent receipt of each request, so that
 * receipts arrive in order.
 */
export async function dueCallbacks(tx: ReadTx, nowMs: number, limit: number): Promise<CallbackRow[]> {
  return tx.all(
    CALLBACK_ROW,
    `SELECT c.request_id AS "requestId", c.number, c.attempts FROM execution_callbacks c
     WHERE c.next_ms <= ? AND NOT EXISTS (
       SELECT 1 FROM execution_callbacks b WHERE b.request_id = c.request_id AND b.number < c.number)
     ORDER BY c.next_ms, c.request_id LIMIT ?`,
    [nowMs, limit],
  );
}

/** Returns the time at which the next callback is due, in epoch milliseconds; undefined for none. */
export async function earliestCallback(tx: ReadTx): Promise<number | undefined> {
  const row = await tx.get(
    NEXT_MS_ROW,
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
