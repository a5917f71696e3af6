import { type ReadTx, row, text, type WriteTx } from "@depute/store";
import { IS_REJECTED } from "./conditions.ts";

const REQUEST_ID_ROW = row({ request_id: text });

/** The tables with rows of an execution. Each row has the request id of its execution. */
const PARTS = [
  "execution_receipts",
  "execution_settlements",
  "execution_verifications",
  "execution_reviews",
  "execution_callbacks",
];

/** Returns the request ids of settled executions that ended before a time, the oldest end first. */
export async function endedExecutions(tx: ReadTx, endMs: number, limit: number): Promise<string[]> {
  const rows = await tx.all(
    REQUEST_ID_ROW,
    `SELECT request_id FROM executions WHERE end_ms IS NOT NULL AND end_ms <= ? AND verify_by_ms IS NULL
     ORDER BY end_ms, request_id LIMIT ?`,
    [endMs, limit],
  );
  return rows.map((row) => row.request_id);
}

/** Returns the request ids of an organization's settled executions that have ended. */
export async function endedExecutionsOf(tx: ReadTx, organization: string, limit: number): Promise<string[]> {
  const rows = await tx.all(
    REQUEST_ID_ROW,
    `SELECT request_id FROM executions WHERE organization = ? AND organization <> '' AND end_ms IS NOT NULL
       AND verify_by_ms IS NULL ORDER BY request_id LIMIT ?`,
    [organization, limit],
  );
  return rows.map((row) => row.request_id);
}

/** Returns the ids of requests that the platform rejected before a time, the oldest first. */
export async function rejectedExecutions(tx: ReadTx, endMs: number, limit: number): Promise<string[]> {
  const rows = await tx.all(
    REQUEST_ID_ROW,
    `SELECT request_id FROM executions WHERE ${IS_REJECTED} AND end_ms <= ?
     ORDER BY end_ms, request_id LIMIT ?`,
    [endMs, limit],
  );
  return rows.map((row) => row.request_id);
}

/** Deletes an execution and all its rows. */
export async function deleteExecution(tx: WriteTx, requestId: string): Promise<void> {
  for (const table of PARTS) await tx.run(`DELETE FROM ${table} WHERE request_id = ?`, [requestId]);
  await tx.run("DELETE FROM executions WHERE request_id = ?", [requestId]);
}
