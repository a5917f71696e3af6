import { fromBinary, toBinary } from "@bufbuild/protobuf";
import { AgentHealth, AgentStatus } from "@depute/contracts/depute/registry/v1/agent_pb";
import { type CapabilityFull, CapabilityFullSchema } from "@depute/contracts/nekte/v1/nekte_pb";
import {
  bytes,
  integer,
  optional,
  type ReadTx,
  type RowOf,
  row,
  type SqlValue,
  text,
  type WriteTx,
} from "@depute/store";
import { type LivenessView, NO_HEARTBEAT } from "../rules/liveness.ts";
import { categoryKey, searchText } from "../rules/match.ts";
import type { ReadCapability } from "../rules/publication.ts";
import { postgresText } from "./postgres-text-index.ts";
import { sightCondition, type Viewer } from "./sight.ts";
import { fts5, type TextDocument, type TextIndex } from "./text-index.ts";
import { trustCondition } from "./trust.ts";

const ID_CATEGORY_KEY_WORDS_ROW = row({ id: text, category_key: text, words: text });
const ID_RECORD_ROW = row({ id: text, record: bytes });
const ID_AGENT_ID_ROW = row({ id: text, agent_id: text });
const N_ROW = row({ n: integer });
const ID_WORDS_ROW = row({ id: text, words: text });
const RECORD_ROW = row({ record: bytes });

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
  /** Words that their agent has all of, as `searchKeys` writes them. */
  readonly keys?: readonly string[] | undefined;
  /** Unspecified: those that live, the suspect ones included. */
  readonly health?: AgentHealth | undefined;
  /** The least trust score of their agent, 0 to 100. */
  readonly minTrust?: number | undefined;
}

/** Who looks, and by what time leases are judged. */
export interface OfferSight {
  readonly viewer: Viewer;
  readonly view: LivenessView;
}

/** A place in the order by id and agent; both empty for its beginning. */
export interface CapabilityPosition {
  readonly id: string;
  readonly agentId: string;
}

export const BEGINNING: CapabilityPosition = { id: "", agentId: "" };

const OFFER_ROW = row({
  agent_id: text,
  version: text,
  principal: text,
  id: text,
  category: text,
  digest: text,
  words: optional(text),
  record: optional(bytes),
});
type OfferRow = RowOf<typeof OFFER_ROW>;

const COLUMNS = "c.agent_id, a.version, a.principal, c.id, c.category, c.digest";

/**
 * Puts a whole new set of capabilities in the place of an agent's old one.
 *
 * @param keys what they are filtered by: the agent's `searchKeys`
 */
export async function replaceCapabilities(
  tx: WriteTx,
  agentId: string,
  capabilities: readonly ReadCapability[],
  keys: readonly string[],
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
  await indexCapabilities(tx, agentId, keys);
}

/** Makes an agent's capabilities found by its keys, and by free text beside them. */
export async function indexCapabilities(
  tx: WriteTx,
  agentId: string,
  keys: readonly string[],
): Promise<void> {
  await tx.run("DELETE FROM capability_keys WHERE agent_id = ?", [agentId]);
  for (const key of keys) {
    await tx.run(
      `INSERT INTO capability_keys (key, id, agent_id)
       SELECT ?, id, agent_id FROM capabilities WHERE agent_id = ?`,
      [key, agentId],
    );
  }
  await tx.run(
    `INSERT INTO capability_keys (key, id, agent_id)
     SELECT 'c' || category_key, id, agent_id FROM capabilities WHERE agent_id = ?`,
    [agentId],
  );
  const rows = await tx.all(
    ID_CATEGORY_KEY_WORDS_ROW,
    "SELECT id, category_key, words FROM capabilities WHERE agent_id = ?",
    [agentId],
  );
  const documents = rows.map((row): TextDocument => {
    const [name = "", category = "", description = ""] = row.words.split("\n");
    return { id: row.id, name, category, description, keys: [textKey(row.category_key), ...keys] };
  });
  await textIndexOf(tx).replace(tx, agentId, documents);
}

/** The free text of the database that a transaction is on. */
const textIndexOf = (tx: ReadTx): TextIndex => (tx.dialect === "sqlite" ? fts5 : postgresText);

/** A category among the keys. */
const textKey = (category: string) => `c${category}`;

/** What an agent has published, living or not, by id. */
export async function publishedBy(tx: ReadTx, agentId: string): Promise<Map<string, CapabilityFull>> {
  const rows = await tx.all(ID_RECORD_ROW, "SELECT id, record FROM capabilities WHERE agent_id = ?", [
    agentId,
  ]);
  return new Map(rows.map((row) => [row.id, fromBinary(CapabilityFullSchema, row.record)]));
}

/** Capabilities looked at in one statement, and statements of one list: what one call may cost, however few it finds. */
const WALK = 1_000;
const MAX_WALKS = 2;

/** What a list found, and where it stopped looking when it stopped early. */
export interface OfferList {
  readonly offers: readonly Offer[];
  readonly stoppedAt: CapabilityPosition | undefined;
}

/**
 * Capabilities that the viewer sees, in the order of id and agent, behind `after`: at most `limit`, of a bounded stretch of
 * the walk, unless `toTheEnd`.
 */
export async function listOffers(
  tx: ReadTx,
  filter: CapabilityFilter,
  list: OfferSight & { after: CapabilityPosition; limit: number; toTheEnd?: boolean },
): Promise<OfferList> {
  const narrowed = withCategoryKey(filter);
  const rarest = await rarestKey(tx, narrowed.keys ?? []);
  const offers: Offer[] = [];
  let { after } = list;
  for (let walks = 0; list.toTheEnd === true || walks < MAX_WALKS; walks++) {
    const until = await walkEnd(tx, narrowed, after, rarest);
    const query = offersQuery(narrowed, { after, until }, list, rarest);
    const rows = await tx.all(OFFER_ROW, `SELECT ${COLUMNS} ${query.sql} LIMIT ?`, [
      ...query.params,
      list.limit - offers.length,
    ]);
    offers.push(...rows.map(toOffer));
    if (until === undefined || offers.length >= list.limit) return { offers, stoppedAt: undefined };
    after = until;
  }
  return { offers, stoppedAt: after };
}

/** Beside other keys a category is one of them: one index then tells of all, and the rarest is walked. */
function withCategoryKey(filter: CapabilityFilter): CapabilityFilter {
  const { keys = [], category } = filter;
  if (
    keys.length === 0 ||
    category === undefined ||
    filter.agentId !== undefined ||
    filter.id !== undefined
  ) {
    return filter;
  }
  return { ...filter, keys: [...keys, textKey(categoryKey(category))], category: undefined };
}

/** The last place of the next stretch of the walk; undefined when it goes to the end. */
async function walkEnd(
  tx: ReadTx,
  filter: CapabilityFilter,
  after: CapabilityPosition,
  rarest: string | undefined,
): Promise<CapabilityPosition | undefined> {
  // An agent has fewer capabilities than a stretch.
  if (filter.agentId !== undefined) return undefined;
  const { table, condition, params } = walkBy(filter, rarest);
  const row = await tx.get(
    ID_AGENT_ID_ROW,
    `SELECT id, agent_id FROM ${table} WHERE ${condition}(id, agent_id) > (?, ?)
     ORDER BY id, agent_id LIMIT 1 OFFSET ?`,
    [...params, after.id, after.agentId, WALK - 1],
  );
  return row && { id: row.id, agentId: row.agent_id };
}

/** The index that a list walks along, in the order of its answer. */
function walkBy(filter: CapabilityFilter, rarest: string | undefined) {
  if (filter.id !== undefined)
    return { table: "capabilities", condition: "id = ? AND ", params: [filter.id] };
  if (rarest !== undefined) return { table: "capability_keys", condition: "key = ? AND ", params: [rarest] };
  if (filter.category === undefined) return { table: "capabilities", condition: "", params: [] };
  const params = [categoryKey(filter.category)];
  return { table: "capabilities", condition: "category_key = ? AND ", params };
}

/** Keys are counted up to here to find the rarest: beyond it a walk finds a page soon enough. */
const MAX_COUNTED = 4_000;

async function rarestKey(tx: ReadTx, keys: readonly string[]): Promise<string | undefined> {
  if (keys.length < 2) return keys[0];
  let rarest: { key: string; count: number } | undefined;
  for (const key of keys) {
    const row = await tx.get(
      N_ROW,
      "SELECT COUNT(*) AS n FROM (SELECT 1 FROM capability_keys WHERE key = ? LIMIT ?) AS counted",
      [key, MAX_COUNTED],
    );
    const count = row?.n ?? 0;
    if (rarest === undefined || count < rarest.count) rarest = { key, count };
  }
  return rarest?.key;
}

/** Capabilities that free text is weighed for, the best by the index first. */
export const MAX_WEIGHED = 1_000;

/** What free text finds: capabilities with the words that they are weighed by. */
export interface TextOffers {
  readonly found: readonly (CapabilityPosition & { readonly words: string })[];
  /** Whether there were more than are weighed. */
  readonly truncated: boolean;
}

/**
 * Capabilities that have the filter's words and one that begins with one of the query's, in no particular order. Their
 * health, their trust and who sees them are still to be asked: `offersAt`.
 *
 * @param words of the query, at least one; letters and digits only
 */
export async function searchOffers(
  tx: ReadTx,
  { agentId, keys = [], category }: CapabilityFilter,
  words: readonly string[],
): Promise<TextOffers> {
  if (agentId !== undefined) {
    const rows = await tx.all(ID_WORDS_ROW, "SELECT id, words FROM capabilities WHERE agent_id = ?", [
      agentId,
    ]);
    return { found: rows.map((row) => ({ ...row, agentId })), truncated: false };
  }
  const all = category === undefined ? keys : [...keys, textKey(categoryKey(category))];
  return textIndexOf(tx).search(tx, words, all, MAX_WEIGHED);
}

/** Those of some capabilities that pass a filter, in the order of the lists. */
export async function offersAt(
  tx: ReadTx,
  filter: CapabilityFilter,
  places: readonly CapabilityPosition[],
  sight: OfferSight,
): Promise<Offer[]> {
  const conditions = offerConditions(filter, sight);
  const rows = await tx.all(
    OFFER_ROW,
    `SELECT ${COLUMNS} FROM json_each(?) j CROSS JOIN capabilities c CROSS JOIN agents a CROSS JOIN leases l
     WHERE c.agent_id = json_extract(j.value, '$[0]') AND c.id = json_extract(j.value, '$[1]')
       AND a.id = c.agent_id AND l.agent_id = c.agent_id AND ${conditions.sql}
     ORDER BY c.id, c.agent_id`,
    [JSON.stringify(places.map(({ agentId, id }) => [agentId, id])), ...conditions.params],
  );
  return rows.map(toOffer);
}

/** Adds what was published to offers of the same transaction. */
export async function loadFull(tx: ReadTx, offers: readonly Offer[]): Promise<FullOffer[]> {
  const full: FullOffer[] = [];
  for (const offer of offers) {
    const row = await tx.get(RECORD_ROW, "SELECT record FROM capabilities WHERE agent_id = ? AND id = ?", [
      offer.agentId,
      offer.id,
    ]);
    if (row !== undefined) full.push({ ...offer, full: fromBinary(CapabilityFullSchema, row.record) });
  }
  return full;
}

/**
 * What stands behind the columns. Exported so that a test can ask how it is run.
 *
 * @param rarest the key to walk by; another condition is walked by when it is undefined
 */
export function offersQuery(
  filter: CapabilityFilter,
  { after, until }: { after: CapabilityPosition; until?: CapabilityPosition | undefined },
  sight: OfferSight,
  rarest: string | undefined,
) {
  const byKey = rarest !== undefined && filter.agentId === undefined && filter.id === undefined;
  const conditions = offerConditions(filter, sight, byKey ? "w" : "c", byKey ? rarest : undefined);
  // The cross joins keep SQLite to this order: it might think leases to be few.
  const [tables, place] = byKey
    ? ["capability_keys w CROSS JOIN capabilities c", "w"]
    : ["capabilities c", "c"];
  const walk = byKey ? "w.key = ? AND c.agent_id = w.agent_id AND c.id = w.id AND " : "";
  const end = until === undefined ? "" : `AND (${place}.id, ${place}.agent_id) <= (?, ?)`;
  const sql = `FROM ${tables} CROSS JOIN agents a CROSS JOIN leases l
    WHERE ${walk}a.id = c.agent_id AND l.agent_id = c.agent_id AND ${conditions.sql}
      AND (${place}.id, ${place}.agent_id) > (?, ?) ${end}
    ORDER BY ${place}.id, ${place}.agent_id`;
  const ends = until === undefined ? [] : [until.id, until.agentId];
  const params = [...(byKey ? [rarest] : []), ...conditions.params, after.id, after.agentId, ...ends];
  return { sql, params };
}

/**
 * What a capability has to meet, on `capabilities c`, `agents a` and `leases l`.
 *
 * @param place the table that is walked: what an index tells of it alone is asked before the others are looked up
 * @param walked the key that is met by walking along it
 */
function offerConditions(
  filter: CapabilityFilter,
  { viewer, view }: OfferSight,
  place: "c" | "w" = "c",
  walked?: string,
) {
  const conditions: string[] = [];
  const params: SqlValue[] = [];
  const where = (sql: string, ...args: SqlValue[]) => {
    conditions.push(sql);
    params.push(...args);
  };
  // A deprecated agent is found by who names it.
  if (filter.agentId === undefined) where("a.status = ?", AgentStatus.ACTIVE);
  else where("a.status <> ? AND c.agent_id = ?", AgentStatus.REMOVED, filter.agentId);
  switch (filter.health) {
    case AgentHealth.ALIVE:
      where("l.expire_time > ? AND l.heartbeat_time <> ?", view.now, NO_HEARTBEAT);
      break;
    case AgentHealth.UNKNOWN:
      where("l.expire_time > ? AND l.heartbeat_time = ?", view.now, NO_HEARTBEAT);
      break;
    case AgentHealth.SUSPECT:
      where("l.expire_time > ? AND l.expire_time <= ?", view.asOf, view.now);
      break;
    case AgentHealth.LOST:
      where("l.expire_time <= ?", view.asOf);
      break;
    default:
      where("l.expire_time > ?", view.asOf);
  }
  if (filter.id !== undefined) where("c.id = ?", filter.id);
  if (filter.category !== undefined) where("c.category_key = ?", categoryKey(filter.category));
  for (const key of filter.keys ?? []) {
    if (key === walked) continue;
    where(
      `EXISTS (SELECT 1 FROM capability_keys k
         WHERE k.key = ? AND k.id = ${place}.id AND k.agent_id = ${place}.agent_id)`,
      key,
    );
  }
  if (filter.minTrust !== undefined && filter.minTrust > 0) {
    const trusted = trustCondition(filter.minTrust, view.now);
    where(trusted.sql, ...trusted.params);
  }
  const sees = sightCondition(viewer);
  if (sees.sql !== "") where(sees.sql, ...sees.params);
  return { sql: conditions.join(" AND "), params };
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
