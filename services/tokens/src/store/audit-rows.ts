import { integer, nullable, oneOf, type ReadTx, row, text, type WriteTx } from "@depute/store";

const LAST_ROW = row({ last: nullable(integer) });

/** Number of decisions that one SQL statement inserts. */
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

/** One decision on authority. The record names blocks by id and contains nothing usable as a credential. */
export interface Decision {
  readonly kind: DecisionKind;
  /** The principal of the caller; empty if the call itself determines the principal. */
  readonly caller: string;
  /** The principal whose authority was proven; empty if none was proven. */
  readonly principal: string;
  readonly decision: "allowed" | "denied";
  /** The reason of a denial; otherwise one word for the granted or revoked object. */
  readonly reason: string;
  /** The revocation ids of the token's blocks, the authority's first. */
  readonly blocks: readonly string[];
}

export interface AuditRow extends Decision {
  readonly id: number;
  /** The time of the decision, in milliseconds since 1970. */
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

/** Appends decisions in order. Decisions never change. */
export async function appendDecisions(
  tx: WriteTx,
  decisions: readonly (Decision & { time: number })[],
): Promise<void> {
  const last = await tx.get(LAST_ROW, "SELECT MAX(id) AS last FROM audit");
  let id = last?.last ?? 0;
  for (let from = 0; from < decisions.length; ) {
    // Inserts a full set or a single row, so that only two SQL statements are prepared.
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
 * Deletes the oldest decisions before a time; returns their number. Ids ascend with time, so no index on times is
 * needed.
 */
export async function forgetDecisions(tx: WriteTx, before: number, limit: number): Promise<number> {
  const { changes } = await tx.run(
    `DELETE FROM audit WHERE id IN
       (SELECT id FROM (SELECT id, time_ms FROM audit ORDER BY id LIMIT ?) AS oldest WHERE time_ms < ?)`,
    [limit, before],
  );
  return changes;
}
