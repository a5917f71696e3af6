import { requestIdReused } from "@depute/core";
import { bytes, type ReadTx, row, text, type WriteTx } from "@depute/store";

const DIGEST_ANSWER_ROW = row({ digest: text, answer: bytes });

/** Milliseconds that an answer is kept for its request to be repeated. */
export const REQUEST_RETENTION_MS = 24 * 60 * 60 * 1000;

/** Old answers forgotten with each new one: more than one, so that they get fewer after a quiet time. */
const FORGOTTEN_AT_ONCE = 10;

/** One mutating call, as it is told from others. */
export interface RequestKey {
  readonly caller: string;
  readonly requestId: string;
  /** Of the call and everything in it. */
  readonly digest: string;
}

/**
 * The answer that this request got before; undefined for a new one.
 *
 * @throws DeputeError REQUEST_ID_REUSED when the caller used the id for something else
 */
export async function recall(tx: ReadTx, key: RequestKey): Promise<Uint8Array | undefined> {
  const row = await tx.get(
    DIGEST_ANSWER_ROW,
    "SELECT digest, answer FROM requests WHERE caller = ? AND request_id = ?",
    [key.caller, key.requestId],
  );
  if (row === undefined || row.digest === key.digest) return row?.answer;
  throw requestIdReused(key.requestId);
}

/** Keeps the answer, and forgets a few that were kept long enough. */
export async function remember(tx: WriteTx, key: RequestKey, answer: Uint8Array, now: number): Promise<void> {
  await tx.run(
    "INSERT INTO requests (caller, request_id, digest, answer, create_time) VALUES (?, ?, ?, ?, ?)",
    [key.caller, key.requestId, key.digest, answer, now],
  );
  await tx.run(
    `DELETE FROM requests WHERE (caller, request_id) IN
       (SELECT caller, request_id FROM requests WHERE create_time < ? ORDER BY create_time LIMIT ?)`,
    [now - REQUEST_RETENTION_MS, FORGOTTEN_AT_ONCE],
  );
}
