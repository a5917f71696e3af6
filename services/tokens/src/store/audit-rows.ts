import { integer, oneOf, type ReadTx, row, text, type WriteTx } from "@depute/store";
import { type AuditEntry, type AuditedDecision, DECISION_KINDS } from "../rules/audit-record.ts";

/** Number of decisions that one SQL statement inserts. */
const ROWS = 32;

const STATE = row({ last_id: integer });
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
 * Appends decisions in order. Decisions never change, and no id is used twice.
 *
 * @param now the time of the append, in milliseconds since 1970
 */
export async function appendDecisions(
  tx: WriteTx,
  decisions: readonly AuditedDecision[],
  now: number,
): Promise<void> {
  if (decisions.length === 0) return;
  const state = await tx.get(STATE, "SELECT last_id FROM audit_state");
  let id = state?.last_id ?? 0;
  for (let from = 0; from < decisions.length; ) {
    // Inserts a full set or a single row, so that only two SQL statements are prepared.
    const rows = decisions.slice(from, from + (decisions.length - from >= ROWS ? ROWS : 1));
    await tx.run(
      `INSERT INTO audit (${COLUMNS}, record_ms) VALUES ${rows.map(() => "(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)").join(", ")}`,
      rows.flatMap(({ time, kind, caller, principal, decision, reason, blocks, source, call }) => [
        ...[++id, time, kind, caller, principal, decision, reason],
        ...[JSON.stringify(blocks), source, JSON.stringify(call), now],
      ]),
    );
    from += rows.length;
  }
  await tx.run("UPDATE audit_state SET last_id = ?", [id]);
}

/** Decisions after an id, in order. */
export async function readDecisions(tx: ReadTx, after: number, limit: number): Promise<AuditEntry[]> {
  const rows = await tx.all(ROW, `SELECT ${COLUMNS} FROM audit WHERE id > ? ORDER BY id LIMIT ?`, [
    after,
    limit,
  ]);
  return rows.map(({ time_ms, blocks, call, ...own }) => ({
    ...own,
    time: time_ms,
    blocks: JSON.parse(blocks),
    call: JSON.parse(call),
  }));
}

/**
 * Returns the id before the first decision that was appended at a time or later. Append times ascend with ids, so a
 * binary search finds it without an index.
 */
export async function idBefore(tx: ReadTx, time: number): Promise<number> {
  const state = await tx.get(STATE, "SELECT last_id FROM audit_state");
  let low = 0;
  let high = state?.last_id ?? 0;
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
 * no index on times is needed.
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
 * Notes a batch of another service.
 *
 * @returns whether it is new
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

/** Deletes notes of batches that were recorded before a time; returns their number. */
export async function forgetBatches(tx: WriteTx, before: number, limit: number): Promise<number> {
  const { changes } = await tx.run(
    `DELETE FROM audit_batches WHERE (source, batch_id) IN
       (SELECT source, batch_id FROM audit_batches WHERE record_ms < ? LIMIT ?)`,
    [before, limit],
  );
  return changes;
}
