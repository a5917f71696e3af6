import type { CryptoEngine } from "@depute/dct";
import { type HashedNode, leafHash, nextAuditHead } from "@depute/dct/transparency";
import {
  integer,
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
import { insertSubtrees } from "./audit-nodes.ts";
import { openTree, readState, sealPastDay, writeState } from "./audit-seal-rows.ts";

/** Number of decisions that one SQL statement inserts. */
const ROWS = 32;

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
 * @param sha256 hashes the records for the chain and the tree of their day
 * @param now the time of the append, in epoch milliseconds
 * @returns whether a day was sealed
 */
export async function appendDecisions(
  tx: WriteTx,
  decisions: readonly AuditedDecision[],
  { sha256, now }: { readonly sha256: CryptoEngine["sha256"]; readonly now: number },
): Promise<boolean> {
  if (decisions.length === 0) return false;
  const { state, isSealed } = await sealPastDay(tx, { sha256, now });
  const tree = openTree(sha256, state);
  const nodes: HashedNode[] = [];
  const lastTime = Math.max(state.lastTime, now);
  let id = state.lastId;
  let { head } = state;
  for (let from = 0; from < decisions.length; ) {
    // Inserts ROWS decisions or one decision at a time, so that the store prepares only two SQL statements.
    const rows = decisions.slice(from, from + (decisions.length - from >= ROWS ? ROWS : 1));
    const values: SqlValue[] = [];
    for (const decision of rows) {
      id += 1;
      const line = auditLine({ ...decision, id });
      head = nextAuditHead(sha256, head, line);
      if (tree !== undefined) nodes.push(...tree.add(leafHash(sha256, line)));
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
  await insertSubtrees(tx, state.firstId, nodes);
  const { treeSize, frontier } = state;
  const grown =
    tree === undefined ? { treeSize, frontier } : { treeSize: tree.size, frontier: tree.frontier };
  await writeState(tx, { ...state, ...grown, lastId: id, head, lastTime });
  return isSealed;
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
 * Records the id of a batch from another service, so that the service detects a repetition.
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
