import type { Agent } from "@depute/contracts/depute/registry/v1/agent_pb";
import { AgentChangeKind } from "@depute/contracts/depute/registry/v1/agent_service_pb";
import { integer, memberOf, nullable, type ReadTx, row, text, type WriteTx } from "@depute/store";
import type { Sight } from "./sight.ts";

const REVISION_ROW = row({ revision: integer });
const FIRST_LAST_ROW = row({ first: nullable(integer), last: nullable(integer) });

/** One entry of the log of changes; the time is epoch ms. */
export interface StoredChange {
  readonly revision: number;
  readonly agentId: string;
  readonly kind: AgentChangeKind;
  readonly time: number;
  /** Who saw the agent before, where this change narrowed or moved that. */
  readonly before: Sight | undefined;
}

const CHANGE_ROW = row({
  revision: integer,
  agent_id: text,
  kind: memberOf(AgentChangeKind),
  time: integer,
  before: nullable(text),
});

/** Entries forgotten with each new one: more than one, so that a smaller log is reached at all. */
const FORGOTTEN_AT_ONCE = 10;

/**
 * Appends to the log, and forgets the oldest entries beyond `kept`. One writer at a time: revisions have no gaps.
 *
 * @param before the record that was replaced, or undefined for a change that leaves who sees it
 */
export async function appendChange(
  tx: WriteTx,
  change: Omit<StoredChange, "revision" | "before">,
  before: Sight | undefined,
  kept: number,
): Promise<void> {
  const row = await tx.get(
    REVISION_ROW,
    `INSERT INTO changes (revision, agent_id, kind, time, before)
     VALUES ((SELECT COALESCE(MAX(revision), 0) + 1 FROM changes), ?, ?, ?, ?) RETURNING revision`,
    [change.agentId, change.kind, change.time, before === undefined ? null : JSON.stringify(facts(before))],
  );
  await tx.run(
    `DELETE FROM changes WHERE revision IN
       (SELECT revision FROM changes WHERE revision <= ? ORDER BY revision LIMIT ?)`,
    [(row?.revision ?? 0) - kept, FORGOTTEN_AT_ONCE],
  );
}

/** The first revision that is kept, one more than the last where none is; and the last, 0 before the first change. */
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
    before: row.before === null ? undefined : (JSON.parse(row.before) as Sight),
  }));
}

/** Whether two records are seen by the same. */
export function sameSight(a: Agent, b: Agent): boolean {
  return JSON.stringify(facts(a)) === JSON.stringify(facts(b));
}

function facts({ principal, organization, visibility, visibleTo }: Sight): Sight {
  return { principal, organization, visibility, visibleTo };
}
