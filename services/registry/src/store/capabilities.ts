import { fromBinary, toBinary } from "@bufbuild/protobuf";
import { AgentStatus } from "@depute/contracts/depute/registry/v1/agent_pb";
import { type CapabilityFull, CapabilityFullSchema } from "@depute/contracts/nekte/v1/nekte_pb";
import type { ReadTx, SqlValue, WriteTx } from "@depute/store";
import { categoryKey, searchText } from "../rules/match.ts";
import type { ReadCapability } from "../rules/publication.ts";

/** A capability as the lists need it. */
export interface Offer {
  readonly agentId: string;
  readonly agentVersion: string;
  readonly agentPrincipal: string;
  readonly id: string;
  readonly category: string;
  readonly digest: string;
}

/** With everything that was published. */
export interface FullOffer extends Offer {
  readonly full: CapabilityFull;
}

/** Which capabilities are looked for; absent members do not narrow it. */
export interface CapabilityFilter {
  readonly agentId?: string | undefined;
  readonly id?: string | undefined;
  readonly category?: string | undefined;
}

/** A place in the order by id and agent; both empty for its beginning. */
export interface CapabilityPosition {
  readonly id: string;
  readonly agentId: string;
}

interface OfferRow {
  agent_id: string;
  version: string;
  principal: string;
  id: string;
  category: string;
  digest: string;
  words?: string;
  record?: Uint8Array;
}

const COLUMNS = "c.agent_id, a.version, a.principal, c.id, c.category, c.digest";

/** Puts a whole new set of capabilities in the place of an agent's old one. */
export async function replaceCapabilities(
  tx: WriteTx,
  agentId: string,
  capabilities: readonly ReadCapability[],
): Promise<void> {
  await tx.run("DELETE FROM capabilities WHERE agent_id = ?", [agentId]);
  for (const { message, category, digest } of capabilities) {
    const words = searchText({ id: message.id, category, description: message.desc ?? "" });
    await tx.run(
      `INSERT INTO capabilities (agent_id, id, category, category_key, digest, words, record)
       VALUES (?, ?, ?, ?, ?, ?, ?)`,
      [
        agentId,
        message.id,
        category,
        categoryKey(category),
        digest,
        words,
        toBinary(CapabilityFullSchema, message),
      ],
    );
  }
}

/** What an agent has published, living or not, by id. */
export async function publishedBy(tx: ReadTx, agentId: string): Promise<Map<string, CapabilityFull>> {
  const rows = await tx.all<{ id: string; record: Uint8Array }>(
    "SELECT id, record FROM capabilities WHERE agent_id = ?",
    [agentId],
  );
  return new Map(rows.map((row) => [row.id, fromBinary(CapabilityFullSchema, row.record)]));
}

/** Capabilities of living agents in the order of id and agent, behind `after`. */
export async function listOffers(
  tx: ReadTx,
  filter: CapabilityFilter,
  { after, limit, now }: { after: CapabilityPosition; limit: number; now: number },
): Promise<Offer[]> {
  const query = offersQuery(filter, after, now);
  const rows = await tx.all<OfferRow>(`SELECT ${COLUMNS} ${query.sql} LIMIT ?`, [...query.params, limit]);
  return rows.map(toOffer);
}

/** Rows looked at in one statement of a search. */
const SEARCH_BATCH = 500;

/**
 * Capabilities of living agents that have a word of the query, in the order of id and agent, a batch at a time: all of
 * them are visited, none is held.
 *
 * @param words of the query, at least one; letters and digits only
 */
export async function searchOffers(
  tx: ReadTx,
  filter: CapabilityFilter,
  words: readonly string[],
  now: number,
  visit: (offer: Offer, searchText: string) => void,
): Promise<void> {
  const anyWord = words.map(() => "c.words LIKE ?").join(" OR ");
  const patterns = words.map((word) => `%${word}%`);
  let after: CapabilityPosition = { id: "", agentId: "" };
  for (;;) {
    const query = offersQuery(filter, after, now, [`(${anyWord})`, patterns]);
    const rows = await tx.all<OfferRow>(`SELECT ${COLUMNS}, c.words ${query.sql} LIMIT ?`, [
      ...query.params,
      SEARCH_BATCH,
    ]);
    for (const row of rows) visit(toOffer(row), row.words ?? "");
    const last = rows.at(-1);
    if (last === undefined || rows.length < SEARCH_BATCH) return;
    after = { id: last.id, agentId: last.agent_id };
  }
}

/** Adds what was published to offers of the same transaction. */
export async function loadFull(tx: ReadTx, offers: readonly Offer[]): Promise<FullOffer[]> {
  const full: FullOffer[] = [];
  for (const offer of offers) {
    const row = await tx.get<{ record: Uint8Array }>(
      "SELECT record FROM capabilities WHERE agent_id = ? AND id = ?",
      [offer.agentId, offer.id],
    );
    if (row !== undefined) full.push({ ...offer, full: fromBinary(CapabilityFullSchema, row.record) });
  }
  return full;
}

/** What stands behind the columns. Exported so that a test can ask how it is run. */
export function offersQuery(
  filter: CapabilityFilter,
  after: CapabilityPosition,
  now: number,
  [condition, values]: [string, readonly SqlValue[]] = ["", []],
) {
  const conditions = ["a.status = ?", "l.expire_time > ?"];
  const params: SqlValue[] = [AgentStatus.ACTIVE, now];
  const where = (sql: string, ...args: SqlValue[]) => {
    conditions.push(sql);
    params.push(...args);
  };
  if (filter.agentId !== undefined) where("c.agent_id = ?", filter.agentId);
  if (filter.id !== undefined) where("c.id = ?", filter.id);
  if (filter.category !== undefined) where("c.category_key = ?", categoryKey(filter.category));
  if (condition !== "") where(condition, ...values);
  where("(c.id, c.agent_id) > (?, ?)", after.id, after.agentId);
  // The cross join keeps SQLite to this order: it might think leases to be few.
  const sql = `FROM capabilities c CROSS JOIN agents a CROSS JOIN leases l
    WHERE a.id = c.agent_id AND l.agent_id = c.agent_id AND ${conditions.join(" AND ")}
    ORDER BY c.id, c.agent_id`;
  return { sql, params };
}

function toOffer(row: OfferRow): Offer {
  return {
    agentId: row.agent_id,
    agentVersion: row.version,
    agentPrincipal: row.principal,
    id: row.id,
    category: row.category,
    digest: row.digest,
  };
}
