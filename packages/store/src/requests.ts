import { requestIdReused } from "@depute/core";
import { bytes, row, text } from "./row.ts";
import type { ReadTx, WriteTx } from "./store.ts";

/** Milliseconds for which the response of a mutating call is stored. A replay gets this response. */
export const REQUEST_RETENTION_MS = 24 * 60 * 60 * 1000;

/**
 * Maximum number of old responses that are deleted with each new response. The number is above one, so that the table
 * shrinks after a busy time.
 */
const DELETED_AT_ONCE = 10;

const REMEMBERED_ROW = row({ digest: text, answer: bytes });

/** Identifies one mutating call. */
export interface RequestKey {
  readonly caller: string;
  readonly requestId: string;
  /** The digest of the call's whole content. */
  readonly digest: string;
}

/**
 * Returns the SQL that creates a table for {@link RequestMemory}.
 *
 * @param table the name of the table, a constant of the code
 */
export function requestTableSql(table: string): string {
  return `
      CREATE TABLE ${table} (
        caller TEXT NOT NULL,
        request_id TEXT NOT NULL,
        digest TEXT NOT NULL,
        answer BYTEA NOT NULL,
        create_time BIGINT NOT NULL,
        PRIMARY KEY (caller, request_id)
      );
      CREATE INDEX ${table}_by_time ON ${table} (create_time)`;
}

/** Stores the responses of mutating calls, so that a replay gets the response of the first call. */
export class RequestMemory {
  readonly #find: string;
  readonly #insert: string;
  readonly #expire: string;
  readonly #forget: string;

  constructor(table: string) {
    this.#find = `SELECT digest, answer FROM ${table} WHERE caller = ? AND request_id = ?`;
    this.#insert = `INSERT INTO ${table} (caller, request_id, digest, answer, create_time) VALUES (?, ?, ?, ?, ?)`;
    this.#expire = `DELETE FROM ${table} WHERE (caller, request_id) IN
       (SELECT caller, request_id FROM ${table} WHERE create_time < ? ORDER BY create_time LIMIT ?)`;
    this.#forget = `DELETE FROM ${table} WHERE (caller, request_id) IN
       (SELECT caller, request_id FROM ${table} WHERE caller = ? ORDER BY request_id LIMIT ?)`;
  }

  /**
   * Returns the stored response to this request; undefined for a new request.
   *
   * @throws DeputeError REQUEST_ID_REUSED when the caller used the id for another request
   */
  async find(tx: ReadTx, { caller, requestId, digest }: RequestKey): Promise<Uint8Array | undefined> {
    const earlierRow = await tx.get(REMEMBERED_ROW, this.#find, [caller, requestId]);
    if (earlierRow === undefined || earlierRow.digest === digest) return earlierRow?.answer;
    throw requestIdReused(requestId);
  }

  /**
   * Stores a response at the time `now`, in epoch milliseconds. Also deletes up to DELETED_AT_ONCE responses whose
   * retention has ended.
   */
  async remember(tx: WriteTx, key: RequestKey, answer: Uint8Array, now: number): Promise<void> {
    await tx.run(this.#insert, [key.caller, key.requestId, key.digest, answer, now]);
    await tx.run(this.#expire, [now - REQUEST_RETENTION_MS, DELETED_AT_ONCE]);
  }
  /** Deletes at most `limit` responses to a caller, and returns the number of deleted responses. */
  async forget(tx: WriteTx, caller: string, limit: number): Promise<number> {
    return (await tx.run(this.#forget, [caller, limit])).changes;
  }
}
