import { decodeBase64Url, encodeBase64Url, formatTime } from "@depute/core";
import type { CryptoEngine } from "@depute/dct";
import { type AuditSeal, FIRST_AUDIT_HEAD, nextAuditHead } from "@depute/dct/transparency";
import {
  integer,
  nullable,
  oneOf,
  type ReadTx,
  type RowOf,
  row,
  type SqlValue,
  text,
  type WriteTx,
} from "@depute/store";
import { auditLine } from "../rules/audit-message.ts";
import {
  type AuditEntry,
  type AuditedDecision,
  DECISION_KINDS,
  toolRequestOf,
} from "../rules/audit-record.ts";

/** Number of decisions that one SQL statement inserts. */
const ROWS = 32;

const STATE = row({
  last_id: integer,
  head: text,
  day: text,
  first_id: integer,
  previous_head: text,
  last_ms: integer,
});
const STATE_SQL = "SELECT last_id, head, day, first_id, previous_head, last_ms FROM audit_state";
const PLACE = row({ id: integer, record_ms: integer });

const COLUMNS = "id, time_ms, kind, caller, principal, decision, reason, blocks, source, call";

const ROW = row({
  id: integer,
  time_ms: integer,
  kind: oneOf(...DECISION_KINDS),
  caller: text,
  principal: text,
  decision: oneOf("allowed", "denied"),
  reason: text,
  blocks: text,
  source: text,
  call: text,
});

/**
 * Appends decisions in order. If a day has ended since the last decision, seals that day first. A stored decision never
 * changes, and no id is used twice.
 *
 * @param sha256 hashes the records for the seal of their day
 * @param now the time of the append, in epoch milliseconds
 * @returns whether a day was sealed
 */
export async function appendDecisions(
  tx: WriteTx,
  decisions: readonly AuditedDecision[],
  { sha256, now }: { readonly sha256: CryptoEngine["sha256"]; readonly now: number },
): Promise<boolean> {
  if (decisions.length === 0) return false;
  const { state, isSealed } = await sealPastDay(tx, now);
  const lastTime = Math.max(state.lastTime, now);
  let id = state.lastId;
  let { head } = state;
  for (let from = 0; from < decisions.length; ) {
    // Inserts ROWS decisions or one decision at a time, so that the store prepares only two SQL statements.
    const rows = decisions.slice(from, from + (decisions.length - from >= ROWS ? ROWS : 1));
    const values: SqlValue[] = [];
    for (const decision of rows) {
      id += 1;
      head = nextAuditHead(sha256, head, auditLine({ ...decision, id }));
      const { time, kind, caller, principal, reason, blocks, source, call } = decision;
      values.push(id, time, kind, caller, principal, decision.decision, reason);
      values.push(JSON.stringify(blocks), source, JSON.stringify(call), lastTime);
      values.push(toolRequestOf(decision) ?? null);
    }
    await tx.run(
      `INSERT INTO audit (${COLUMNS}, record_ms, tool_request)
       VALUES ${rows.map(() => "(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)").join(", ")}`,
      values,
    );
    from += rows.length;
  }
  await writeState(tx, { ...state, lastId: id, head, lastTime });
  return isSealed;
}

interface AuditState {
  readonly lastId: number;
  readonly head: Uint8Array;
  /** The day, in UTC, of the records from `firstId` on; empty before the first record. */
  readonly day: string;
  readonly firstId: number;
  readonly previousHead: Uint8Array;
  /** The time at which the newest record was appended, in epoch milliseconds. */
  readonly lastTime: number;
}

async function readState(tx: ReadTx): Promise<AuditState> {
  const state = await tx.get(STATE, STATE_SQL);
  if (state === undefined) throw new Error("audit_state has no row; migration 12 inserts it");
  const { last_id: lastId, day, first_id: firstId, last_ms: lastTime } = state;
  return {
    lastId,
    day,
    firstId,
    lastTime,
    head: headOf(state.head),
    previousHead: headOf(state.previous_head),
  };
}

async function writeState(tx: WriteTx, state: AuditState): Promise<void> {
  const { lastId, head, day, firstId, previousHead, lastTime } = state;
  await tx.run(
    "UPDATE audit_state SET last_id = ?, head = ?, day = ?, first_id = ?, previous_head = ?, last_ms = ?",
    [lastId, encodeBase64Url(head), day, firstId, encodeBase64Url(previousHead), lastTime],
  );
}

function headOf(text: string): Uint8Array {
  return text === "" ? FIRST_AUDIT_HEAD : (decodeBase64Url(text) ?? FIRST_AUDIT_HEAD);
}

/**
 * Seals the open day if it has ended.
 *
 * @param now epoch milliseconds
 * @returns the state of the log for the next record, and whether a day was sealed
 */
export async function sealPastDay(
  tx: WriteTx,
  now: number,
): Promise<{ readonly state: AuditState; readonly isSealed: boolean }> {
  const state = await readState(tx);
  const { lastId, head, day, firstId, previousHead } = state;
  const today = formatTime(now).slice(0, "2026-01-31".length);
  // If the clock was set back to an earlier day, the open day stays open.
  if (today <= day) return { state, isSealed: false };
  const isSealed = day !== "" && lastId >= firstId;
  if (isSealed) {
    await tx.run(
      "INSERT INTO audit_seals (day, first_id, last_id, previous_head, head) VALUES (?, ?, ?, ?, ?)",
      [day, firstId, lastId, encodeBase64Url(previousHead), encodeBase64Url(head)],
    );
  }
  const opened = { ...state, day: today, firstId: lastId + 1, previousHead: head };
  await writeState(tx, opened);
  return { state: opened, isSealed };
}

/** The seal of a day, and its position in the transparency log; null if the seal is not yet in the log. */
export interface SealRow extends AuditSeal {
  readonly logIndex: number | null;
}

const SEAL = row({
  day: text,
  first_id: integer,
  last_id: integer,
  previous_head: text,
  head: text,
  log_index: nullable(integer),
});
const SEAL_SQL = "SELECT day, first_id, last_id, previous_head, head, log_index FROM audit_seals";

/** Returns the seals of the days after the day `afterDay`, in order. */
export async function readSeals(tx: ReadTx, afterDay: string, limit: number): Promise<SealRow[]> {
  return (await tx.all(SEAL, `${SEAL_SQL} WHERE day > ? ORDER BY day LIMIT ?`, [afterDay, limit])).map(
    toSeal,
  );
}

/** Returns the oldest seals that are not yet in the transparency log. */
export async function readUnloggedSeals(tx: ReadTx, limit: number): Promise<SealRow[]> {
  return (await tx.all(SEAL, `${SEAL_SQL} WHERE log_index IS NULL ORDER BY day LIMIT ?`, [limit])).map(
    toSeal,
  );
}

export async function setSealLogged(tx: WriteTx, day: string, logIndex: number): Promise<void> {
  await tx.run("UPDATE audit_seals SET log_index = ? WHERE day = ?", [logIndex, day]);
}

function toSeal(row: RowOf<typeof SEAL>): SealRow {
  return {
    ...{ day: row.day, firstSequence: row.first_id, lastSequence: row.last_id, logIndex: row.log_index },
    ...{ previousHead: headOf(row.previous_head), head: headOf(row.head) },
  };
}

/** Returns decisions after an id, in order. */
export async function readDecisions(tx: ReadTx, after: number, limit: number): Promise<AuditEntry[]> {
  const rows = await tx.all(ROW, `SELECT ${COLUMNS} FROM audit WHERE id > ? ORDER BY id LIMIT ?`, [
    after,
    limit,
  ]);
  return rows.map(toEntry);
}

/**
 * Returns the decisions on the tool calls of one request, in order.
 *
 * @param id the id of the only decision to return; 0 for all decisions
 */
export async function readToolCalls(
  tx: ReadTx,
  { requestId, id }: { readonly requestId: string; readonly id: number },
  limit: number,
): Promise<AuditEntry[]> {
  const [where, params] = id === 0 ? ["", []] : ["AND id = ?", [id]];
  const rows = await tx.all(
    ROW,
    `SELECT ${COLUMNS} FROM audit WHERE tool_request = ? ${where} ORDER BY id LIMIT ?`,
    [requestId, ...params, limit],
  );
  return rows.map(toEntry);
}

function toEntry({ time_ms, blocks, call, ...own }: RowOf<typeof ROW>): AuditEntry {
  return { ...own, time: time_ms, blocks: JSON.parse(blocks), call: JSON.parse(call) };
}

/**
 * Returns the id of the last decision that was appended before a time; 0 if there is none. Append times ascend with
 * ids, so a binary search needs no index.
 */
export async function idBefore(tx: ReadTx, time: number): Promise<number> {
  let low = 0;
  let high = (await readState(tx)).lastId;
  while (low < high) {
    const middle = Math.ceil((low + high) / 2);
    const next = await tx.get(PLACE, "SELECT id, record_ms FROM audit WHERE id >= ? ORDER BY id LIMIT 1", [
      middle,
    ]);
    if (next !== undefined && next.record_ms < time) low = next.id;
    else high = middle - 1;
  }
  return low;
}

/**
 * Deletes the oldest decisions that were appended before a time; returns their number. Append times ascend with ids, so
 * the deletion needs no index on times.
 */
export async function forgetDecisions(tx: WriteTx, before: number, limit: number): Promise<number> {
  const { changes } = await tx.run(
    `DELETE FROM audit WHERE id IN
       (SELECT id FROM (SELECT id, record_ms FROM audit ORDER BY id LIMIT ?) AS oldest WHERE record_ms < ?)`,
    [limit, before],
  );
  return changes;
}

/**
 * Records the id of a batch from another service, so that the service detects a repeated batch.
 *
 * @returns false if the batch was recorded before
 */
export async function insertBatch(
  tx: WriteTx,
  { source, batchId, time }: { readonly source: string; readonly batchId: string; readonly time: number },
): Promise<boolean> {
  const { changes } = await tx.run(
    "INSERT INTO audit_batches (source, batch_id, record_ms) VALUES (?, ?, ?) ON CONFLICT DO NOTHING",
    [source, batchId, time],
  );
  return changes > 0;
}

/** Deletes ids of batches that were recorded before a time; returns their number. */
export async function forgetBatches(tx: WriteTx, before: number, limit: number): Promise<number> {
  const { changes } = await tx.run(
    `DELETE FROM audit_batches WHERE (source, batch_id) IN
       (SELECT source, batch_id FROM audit_batches WHERE record_ms < ? LIMIT ?)`,
    [before, limit],
  );
  return changes;
}
