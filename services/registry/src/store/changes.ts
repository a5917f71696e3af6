import type { Agent } from "@depute/contracts/depute/registry/v1/agent_pb";
import { AgentChangeKind } from "@depute/contracts/depute/registry/v1/agent_service_pb";
import { integer, memberOf, nullable, type ReadTx, row, text, type WriteTx } from "@depute/store";
import type { VisibilityFields } from "../rules/agent.ts";

const REVISION_ROW = row({ revision: integer });
const FIRST_LAST_ROW = row({ first: nullable(integer), last: nullable(integer) });

/** One entry of the change log. The time is epoch milliseconds. */
export interface StoredChange {
  readonly revision: number;
  readonly agentId: string;
  readonly kind: AgentChangeKind;
  readonly time: number;
  /** The visibility before the change; undefined if the change did not alter the visibility. */
  readonly before: VisibilityFields | undefined;
}

const CHANGE_ROW = row({
  revision: integer,
  agent_id: text,
  kind: memberOf(AgentChangeKind),
  time: integer,
  before: nullable(text),
});

/**
 * Maximum number of entries that each insert deletes. The number is above one, so that the log shrinks after the
 * operator lowers its limit.
 */
const DELETED_PER_INSERT = 10;

/**
 * Appends a change, and deletes the oldest entries beyond `retainedCount`. Only one transaction writes at a time, so
 * revisions have no gaps.
 *
 * @param before the visibility of the replaced record; undefined if the visibility does not change
 */
export async function appendChange(
  tx: WriteTx,
  change: Omit<StoredChange, "revision" | "before">,
  before: VisibilityFields | undefined,
  retainedCount: number,
): Promise<void> {
  const row = await tx.get(
    REVISION_ROW,
    `INSERT INTO changes (revision, agent_id, kind, time, before)
     VALUES ((SELECT COALESCE(MAX(revision), 0) + 1 FROM changes), ?, ?, ?, ?) RETURNING revision`,
    [
      change.agentId,
      change.kind,
      change.time,
      before === undefined ? null : JSON.stringify(visibilityOf(before)),
    ],
  );
  await tx.run(
    `DELETE FROM changes WHERE revision IN
       (SELECT revision FROM changes WHERE revision <= ? ORDER BY revision LIMIT ?)`,
    [(row?.revision ?? 0) - retainedCount, DELETED_PER_INSERT],
  );
}

/**
 * Returns the bounds of the log. `first` is the oldest stored revision; in an empty log it is `last` plus one. `last`
 * is 0 before the first change.
 */
export async function changeBounds(tx: ReadTx): Promise<{ first: number; last: number }> {
  const row = await tx.get(
    FIRST_LAST_ROW,
    "SELECT (SELECT MIN(revision) FROM changes) AS first, (SELECT MAX(revision) FROM changes) AS last",
  );
  return { first: row?.first ?? 1, last: row?.last ?? 0 };
}

export async function listChanges(tx: ReadTx, after: number, limit: number): Promise<StoredChange[]> {
  const rows = await tx.all(
    CHANGE_ROW,
    "SELECT revision, agent_id, kind, time, before FROM changes WHERE revision > ? ORDER BY revision LIMIT ?",
    [after, limit],
  );
  return rows.map((row) => ({
    revision: row.revision,
    agentId: row.agent_id,
    kind: row.kind,
    time: row.time,
    before: row.before === null ? undefined : (JSON.parse(row.before) as VisibilityFields),
  }));
}

/** Whether two records have the same visibility. */
export function hasSameVisibility(a: Agent, b: Agent): boolean {
  return JSON.stringify(visibilityOf(a)) === JSON.stringify(visibilityOf(b));
}

function visibilityOf({
  principal,
  organization,
  visibility,
  visibleTo,
}: VisibilityFields): VisibilityFields {
  return { principal, organization, visibility, visibleTo };
}
