import { fromBinary, toBinary } from "@bufbuild/protobuf";
import { AgentHealth, AgentStatus } from "@depute/contracts/depute/registry/v1/agent_pb";
import { type CapabilityFull, CapabilityFullSchema } from "@depute/contracts/nekte/v1/nekte_pb";
import {
  bytes,
  optional,
  type ReadTx,
  type RowOf,
  row,
  type SqlValue,
  text,
  type WriteTx,
} from "@depute/store";
import { type LivenessView, NO_HEARTBEAT, type Viewer } from "../rules/agent.ts";
import { categoryKey, searchText } from "../rules/match.ts";
import type { ReadCapability } from "../rules/publication.ts";
import { firstPassing } from "./first-passing.ts";
import { findPlaces, type Place } from "./key-walk.ts";
import type { TextDocument } from "./text-index.ts";
import { textIndexOf } from "./text-indexes.ts";
import { trustCondition } from "./trust.ts";
import { visibilityCondition } from "./visibility.ts";

const ID_CATEGORY_KEY_WORDS_ROW = row({ id: text, category_key: text, words: text });
const ID_RECORD_ROW = row({ id: text, record: bytes });
const ID_AGENT_ID_ROW = row({ id: text, agent_id: text });
const ID_WORDS_ROW = row({ id: text, words: text });
const RECORD_ROW = row({ record: bytes });

/** A capability with the columns for lists. */
export interface CapabilityRow {
  readonly agentId: string;
  readonly agentVersion: string;
  readonly agentPrincipal: string;
  readonly id: string;
  readonly category: string;
  readonly digest: string;
}

/** A capability with its published message. */
export interface FullCapability extends CapabilityRow {
  readonly full: CapabilityFull;
}

/**
 * The filter of a list of capabilities. An absent member matches all capabilities, with two exceptions. Without
 * `agentId`, deprecated agents do not match. Without `health`, only agents that count as live match.
 */
export interface CapabilityFilter {
  readonly agentId?: string | undefined;
  readonly id?: string | undefined;
  readonly category?: string | undefined;
  /**
   * Search keys of the agent in the form of `searchKeys`. The list contains capabilities of agents with all of these
   * keys.
   */
  readonly keys?: readonly string[] | undefined;
  /** The required health of the agent. UNSPECIFIED means live agents, including SUSPECT agents. */
  readonly health?: AgentHealth | undefined;
  /** The agent's minimum trust score, from 0 to 100. */
  readonly minTrust?: number | undefined;
}

/** The principal that lists capabilities, and the reference time for the agents' liveness. */
export interface CapabilityView {
  readonly viewer: Viewer;
  readonly view: LivenessView;
}

export const BEGINNING: Place = { id: "", agentId: "" };

const SELECTED_ROW = row({
  agent_id: text,
  version: text,
  principal: text,
  id: text,
  category: text,
  digest: text,
  words: optional(text),
  record: optional(bytes),
});
type SelectedRow = RowOf<typeof SELECTED_ROW>;

const COLUMNS = "c.agent_id, a.version, a.principal, c.id, c.category, c.digest";

/**
 * Replaces all capabilities of an agent.
 *
 * @param keys the agent's `searchKeys`
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

/**
 * Replaces an agent's capabilities in the indexes of keys and of text.
 *
 * @param keys the agent's `searchKeys`
 */
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
    return { id: row.id, name, category, description, keys: [categoryWord(row.category_key), ...keys] };
  });
  await textIndexOf(tx).replace(tx, agentId, documents);
}

/** Returns the search key of a category. */
const categoryWord = (category: string) => `c${category}`;

/** Returns the published capabilities of an agent by their ids, even if the agent is not live. */
export async function publishedBy(tx: ReadTx, agentId: string): Promise<Map<string, CapabilityFull>> {
  const rows = await tx.all(ID_RECORD_ROW, "SELECT id, record FROM capabilities WHERE agent_id = ?", [
    agentId,
  ]);
  return new Map(rows.map((row) => [row.id, fromBinary(CapabilityFullSchema, row.record)]));
}

/**
 * Limits of the cost of one list: the rows that one SQL statement reads (WALK), and the number of statements
 * (MAX_WALKS).
 */
const WALK = 1_000;
const MAX_WALKS = 2;

/**
 * The capabilities of a list. `stoppedAt` is the last place that the list read if the list stopped early; otherwise
 * undefined.
 */
export interface CapabilityList {
  readonly rows: readonly CapabilityRow[];
  readonly stoppedAt: Place | undefined;
}

/** The part of a list of capabilities to read, and its viewer. */
export interface CapabilityPage extends CapabilityView {
  readonly after: Place;
  readonly limit: number;
  /**
   * Whether the list continues until it has `limit` results, however many rows that takes. No effect on a filter with
   * keys or a category.
   */
  readonly toTheEnd?: boolean;
}

/**
 * Returns at most `limit` visible capabilities sorted by id, then by agent, starting after `after`. Reads a bounded
 * number of rows.
 */
export async function listCapabilities(
  tx: ReadTx,
  filter: CapabilityFilter,
  list: CapabilityPage,
): Promise<CapabilityList> {
  const { agentId, id, category, keys: agentKeys = [], ...rest } = filter;
  const keys = keysOf(filter);
  if (agentId !== undefined || keys.length === 0) return walkCapabilities(tx, filter, list);
  const { items, stoppedAt } = await firstPassing(
    list.after,
    list.limit,
    (after, limit) => findPlaces(tx, { resource: "capabilities", keys, id }, after, limit),
    (places) => capabilitiesAt(tx, rest, places, list),
  );
  return { rows: items, stoppedAt };
}

/** Returns the search keys of a filter, with the key of its category. */
function keysOf({ keys = [], category }: CapabilityFilter): readonly string[] {
  return category === undefined ? keys : [...keys, categoryWord(categoryKey(category))];
}

/** Implements `listCapabilities` for a filter that names one agent, or for a filter without keys. */
async function walkCapabilities(
  tx: ReadTx,
  filter: CapabilityFilter,
  list: CapabilityPage,
): Promise<CapabilityList> {
  const capabilityRows: CapabilityRow[] = [];
  let { after } = list;
  for (let walks = 0; list.toTheEnd === true || walks < MAX_WALKS; walks++) {
    const until = await walkEnd(tx, filter, after);
    const query = capabilitiesQuery(filter, { after, until }, list);
    const rows = await tx.all(SELECTED_ROW, `SELECT ${COLUMNS} ${query.sql} LIMIT ?`, [
      ...query.params,
      list.limit - capabilityRows.length,
    ]);
    capabilityRows.push(...rows.map(toCapabilityRow));
    if (until === undefined || capabilityRows.length >= list.limit)
      return { rows: capabilityRows, stoppedAt: undefined };
    after = until;
  }
  return { rows: capabilityRows, stoppedAt: after };
}

/** Returns the place of the `WALK`th row after the place `after`; undefined if fewer rows follow. */
async function walkEnd(tx: ReadTx, filter: CapabilityFilter, after: Place): Promise<Place | undefined> {
  // The capabilities of one agent are fewer than `WALK`, so one statement reads them all.
  if (filter.agentId !== undefined) return undefined;
  const [condition, params] = filter.id === undefined ? ["", []] : ["id = ? AND ", [filter.id]];
  const row = await tx.get(
    ID_AGENT_ID_ROW,
    `SELECT id, agent_id FROM capabilities WHERE ${condition}(id, agent_id) > (?, ?)
     ORDER BY id, agent_id LIMIT 1 OFFSET ?`,
    [...params, after.id, after.agentId, WALK - 1],
  );
  return row && { id: row.id, agentId: row.agent_id };
}

/**
 * Maximum number of matches that the text index returns for scoring. If more capabilities match, `TextIndex.search`
 * determines which of them it returns.
 */
export const MAX_WEIGHED = 1_000;

/** The matches of a text search: capabilities, and the words from which their scores are computed. */
export interface TextMatchList {
  readonly matches: readonly (Place & { readonly words: string })[];
  /** Whether the index has more matches than it returned. */
  readonly truncated: boolean;
}

/**
 * Finds at most MAX_WEIGHED capabilities that have the filter's keys and a word that begins with a query word, in no
 * particular order. For a filter that names an agent, returns all capabilities of that agent. Filter the result by
 * health, trust and visibility with `capabilitiesAt`.
 *
 * @param words the words of the query, at least one; letters and digits only
 */
export async function searchCapabilities(
  tx: ReadTx,
  filter: CapabilityFilter,
  words: readonly string[],
): Promise<TextMatchList> {
  const { agentId } = filter;
  if (agentId !== undefined) {
    const rows = await tx.all(ID_WORDS_ROW, "SELECT id, words FROM capabilities WHERE agent_id = ?", [
      agentId,
    ]);
    return { matches: rows.map((row) => ({ ...row, agentId })), truncated: false };
  }
  return textIndexOf(tx).search(tx, words, keysOf(filter), MAX_WEIGHED);
}

/** Reads the capabilities at the given places that pass the filter, sorted by id, then by agent. */
export async function capabilitiesAt(
  tx: ReadTx,
  filter: CapabilityFilter,
  places: readonly Place[],
  sight: CapabilityView,
): Promise<CapabilityRow[]> {
  const conditions = capabilityConditions(filter, sight);
  const rows = await tx.all(
    SELECTED_ROW,
    `SELECT ${COLUMNS} FROM json_each(?) j CROSS JOIN capabilities c CROSS JOIN agents a CROSS JOIN leases l
     WHERE c.agent_id = json_extract(j.value, '$[0]') AND c.id = json_extract(j.value, '$[1]')
       AND a.id = c.agent_id AND l.agent_id = c.agent_id AND ${conditions.sql}
     ORDER BY c.id, c.agent_id`,
    [JSON.stringify(places.map(({ agentId, id }) => [agentId, id])), ...conditions.params],
  );
  return rows.map(toCapabilityRow);
}

/** Reads the published messages of capabilities that the same transaction has listed. */
export async function loadFull(tx: ReadTx, rows: readonly CapabilityRow[]): Promise<FullCapability[]> {
  const full: FullCapability[] = [];
  for (const capability of rows) {
    const row = await tx.get(RECORD_ROW, "SELECT record FROM capabilities WHERE agent_id = ? AND id = ?", [
      capability.agentId,
      capability.id,
    ]);
    if (row !== undefined) full.push({ ...capability, full: fromBinary(CapabilityFullSchema, row.record) });
  }
  return full;
}

/** Returns the FROM clause, the conditions and the order of a list. Exported so that tests can read its query plan. */
export function capabilitiesQuery(
  filter: CapabilityFilter,
  { after, until }: { after: Place; until?: Place | undefined },
  sight: CapabilityView,
) {
  const conditions = capabilityConditions(filter, sight);
  const end = until === undefined ? "" : "AND (c.id, c.agent_id) <= (?, ?)";
  // The cross joins fix the order of the tables, because SQLite's statistics may underestimate the number of leases.
  const sql = `FROM capabilities c CROSS JOIN agents a CROSS JOIN leases l
    WHERE a.id = c.agent_id AND l.agent_id = c.agent_id AND ${conditions.sql}
      AND (c.id, c.agent_id) > (?, ?) ${end}
    ORDER BY c.id, c.agent_id`;
  const ends = until === undefined ? [] : [until.id, until.agentId];
  return { sql, params: [...conditions.params, after.id, after.agentId, ...ends] };
}

/** Returns the SQL conditions of a filter on `capabilities c`, `agents a` and `leases l`. */
function capabilityConditions(filter: CapabilityFilter, { viewer, view }: CapabilityView) {
  const conditions: string[] = [];
  const params: SqlValue[] = [];
  const where = (sql: string, ...args: SqlValue[]) => {
    conditions.push(sql);
    params.push(...args);
  };
  // A filter that names no agent excludes deprecated agents.
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
    where(
      `EXISTS (SELECT 1 FROM capability_keys k
         WHERE k.key = ? AND k.id = c.id AND k.agent_id = c.agent_id)`,
      key,
    );
  }
  if (filter.minTrust !== undefined && filter.minTrust > 0) {
    const trusted = trustCondition(filter.minTrust, view.now);
    where(trusted.sql, ...trusted.params);
  }
  const isVisible = visibilityCondition(viewer);
  if (isVisible.sql !== "") where(isVisible.sql, ...isVisible.params);
  return { sql: conditions.join(" AND "), params };
}

function toCapabilityRow(row: SelectedRow): CapabilityRow {
  return {
    agentId: row.agent_id,
    agentVersion: row.version,
    agentPrincipal: row.principal,
    id: row.id,
    category: row.category,
    digest: row.digest,
  };
}
