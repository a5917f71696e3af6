import { integer, nullable, oneOf, type ReadTx, row, text, type WriteTx } from "@depute/store";

const LAST_ROW = row({ last: nullable(integer) });

/** Decisions that one statement writes. */
const ROWS = 32;

const KINDS = [
  "mint",
  "record",
  "attenuate",
  "inspect",
  "verify_token",
  "verify_proof",
  "open_session",
  "revoke",
  "reserve",
  "commit",
  "release",
  "finish",
  "create_key",
  "rotate_key",
] as const;
export type DecisionKind = (typeof KINDS)[number];

/** One decision on authority. It names blocks by their ids and holds nothing that could be presented. */
export interface Decision {
  readonly kind: DecisionKind;
  /** Who made the call: a principal, or empty where that was what was asked. */
  readonly caller: string;
  /** Whose authority it was about; empty where nobody's was proved. */
  readonly principal: string;
  readonly decision: "allowed" | "denied";
  /** Why, for a denial; what was granted or revoked, in a word, otherwise. */
  readonly reason: string;
  /** Revocation ids, the authority's first. */
  readonly blocks: readonly string[];
}

export interface AuditRow extends Decision {
  readonly id: number;
  /** Milliseconds since 1970. */
  readonly time: number;
}

const ROW = row({
  id: integer,
  time_ms: integer,
  kind: oneOf(...KINDS),
  caller: text,
  principal: text,
  decision: oneOf("allowed", "denied"),
  reason: text,
  blocks: text,
});

/** Appends decisions in order. Nothing is ever changed. */
export async function appendDecisions(
  tx: WriteTx,
  decisions: readonly (Decision & { time: number })[],
): Promise<void> {
  const last = await tx.get(LAST_ROW, "SELECT MAX(id) AS last FROM audit");
  let id = last?.last ?? 0;
  for (let from = 0; from < decisions.length; ) {
    // Whole statements of one length, so that there are two to prepare and not as many as lengths.
    const rows = decisions.slice(from, from + (decisions.length - from >= ROWS ? ROWS : 1));
    await tx.run(
      `INSERT INTO audit (id, time_ms, kind, caller, principal, decision, reason, blocks)
       VALUES ${rows.map(() => "(?, ?, ?, ?, ?, ?, ?, ?)").join(", ")}`,
      rows.flatMap(({ time, kind, caller, principal, decision, reason, blocks }) => {
        return [++id, time, kind, caller, principal, decision, reason, JSON.stringify(blocks)];
      }),
    );
    from += rows.length;
  }
}

/** Decisions after an id, in order. */
export async function readDecisions(tx: ReadTx, after: number, limit: number): Promise<AuditRow[]> {
  const rows = await tx.all(
    ROW,
    `SELECT id, time_ms, kind, caller, principal, decision, reason, blocks FROM audit
     WHERE id > ? ORDER BY id LIMIT ?`,
    [after, limit],
  );
  return rows.map(({ time_ms, blocks, ...row }) => ({ ...row, time: time_ms, blocks: JSON.parse(blocks) }));
}

/**
 * Removes those of the oldest decisions that were made before a time; how many. Nothing younger is ever touched. Their ids
 * are in the order of their times, so that no index of times is kept for it at every decision.
 */
export async function forgetDecisions(tx: WriteTx, before: number, limit: number): Promise<number> {
  const { changes } = await tx.run(
    `DELETE FROM audit WHERE id IN
       (SELECT id FROM (SELECT id, time_ms FROM audit ORDER BY id LIMIT ?) AS oldest WHERE time_ms < ?)`,
    [limit, before],
  );
  return changes;
}
