import { integer, type ReadTx, row, type SqlValue, text } from "@depute/store";
import { textIndexOf } from "./text-indexes.ts";

const N_ROW = row({ n: integer });
const PLACE_ROW = row({ id: text, agentId: text });

/**
 * A place in a list that is sorted by id, then by agent. Id and agent are empty before the first place. In a search
 * for agents, the id is always empty.
 */
export interface Place {
  readonly id: string;
  readonly agentId: string;
}

/**
 * A search for entries with all of the given keys. The entries are agents, all capabilities, or the capabilities with a
 * given id.
 */
export interface KeyQuery {
  readonly resource: "agents" | "capabilities";
  /** The keys to search for, at least one, in the form of `searchKeys` and `categoryWord`. */
  readonly keys: readonly string[];
  /** The capability id to which the search is restricted; absent for none. */
  readonly id?: string | undefined;
}

/**
 * The first places of a search. `stoppedAt` is the last place that the search read if the search stopped early;
 * otherwise undefined.
 */
export interface PlaceList {
  readonly places: readonly Place[];
  readonly stoppedAt: Place | undefined;
}

/** Limits on the cost of one search. */
export interface SearchBounds {
  /** Maximum rows of the rarest key that one SQL statement reads (`walk`), and maximum statements (`maxWalks`). */
  readonly walk: number;
  readonly maxWalks: number;
  /**
   * Maximum number of capabilities that the text index returns for several keys. If more match, the search reads
   * further rows of the rarest key instead.
   */
  readonly maxMatches: number;
}

const BOUNDS: SearchBounds = { walk: 1_000, maxWalks: 3, maxMatches: 1_000 };

/**
 * Maximum number of rows that the search counts for each key to find the rarest. The exact count of a more frequent
 * key does not matter, because few reads of such a key fill a page.
 */
const MAX_COUNTED = 1_000;

/**
 * Returns at most `limit` places after `after` that have all keys, sorted by id, then by agent. The search reads the
 * rows of the rarest key, a limited number per statement. If the first statement of a search in all capabilities does
 * not fill the page, few capabilities have all keys. Then the text index intersects the keys instead.
 */
export async function findPlaces(
  tx: ReadTx,
  query: KeyQuery,
  after: Place,
  limit: number,
  bounds: SearchBounds = BOUNDS,
): Promise<PlaceList> {
  const walked = await rarestKey(tx, query);
  const isAlone = query.keys.length === 1;
  const places: Place[] = [];
  let from = after;
  for (let walks = 0; walks < bounds.maxWalks; walks++) {
    const until = isAlone ? undefined : await walkEnd(tx, query, walked, from, bounds.walk);
    const { sql, params } = walkQuery(query, walked, from, until);
    places.push(...(await tx.all(PLACE_ROW, `${sql} LIMIT ?`, [...params, limit - places.length])));
    if (until === undefined || places.length >= limit) return { places, stoppedAt: undefined };
    if (walks === 0 && query.resource === "capabilities" && query.id === undefined) {
      const all = await textIndexOf(tx).withKeys(tx, query.keys, after, bounds.maxMatches);
      if (all !== undefined) return { places: all.slice(0, limit), stoppedAt: undefined };
    }
    from = until;
  }
  return { places, stoppedAt: from };
}

/**
 * Returns the statement that reads the rows up to `until`, without its limit. Exported so that a test can read its
 * query plan.
 */
export function walkQuery(
  query: KeyQuery,
  walked: string,
  after: Place,
  until: Place | undefined,
): { sql: string; params: SqlValue[] } {
  const { table, columns, same, order, where, params, at } = tableOf(query);
  const others = query.keys.filter((key) => key !== walked);
  const exists = others.map(() => `AND EXISTS (SELECT 1 FROM ${table} k WHERE k.key = ? AND ${same})`);
  const end = until === undefined ? "" : `AND (${order}) <= (${at(until).map(() => "?")})`;
  return {
    sql: `SELECT ${columns} FROM ${table} w
      WHERE w.key = ? ${where} AND (${order}) > (${at(after).map(() => "?")}) ${end} ${exists.join(" ")}
      ORDER BY ${order}`,
    params: [walked, ...params, ...at(after), ...(until === undefined ? [] : at(until)), ...others],
  };
}

/**
 * Returns the place of the row that is `rows` rows after the place `after`. Counts only rows with the key `walked`.
 * Returns undefined if fewer rows follow.
 */
async function walkEnd(tx: ReadTx, query: KeyQuery, walked: string, after: Place, rows: number) {
  const { sql, params } = walkQuery({ ...query, keys: [walked] }, walked, after, undefined);
  return tx.get(PLACE_ROW, `${sql} LIMIT 1 OFFSET ?`, [...params, rows - 1]);
}

async function rarestKey(tx: ReadTx, query: KeyQuery): Promise<string> {
  const { table, where, params } = tableOf(query);
  const [first = "", ...others] = query.keys;
  if (others.length === 0) return first;
  let rarest = { key: first, count: Number.POSITIVE_INFINITY };
  for (const key of query.keys) {
    const counted = await tx.get(
      N_ROW,
      `SELECT COUNT(*) AS n FROM (SELECT 1 FROM ${table} w WHERE w.key = ? ${where} LIMIT ?) AS counted`,
      [key, ...params, MAX_COUNTED],
    );
    const count = counted?.n ?? 0;
    if (count < rarest.count) rarest = { key, count };
  }
  return rarest.key;
}

/** Returns the table that a query reads, with the alias `w`, and the columns by which the rows are sorted. */
function tableOf({ resource, id }: KeyQuery) {
  const byAgent = { order: "w.agent_id", at: (place: Place) => [place.agentId] };
  if (resource === "agents") {
    const columns = "'' AS id, w.agent_id AS agentId";
    return {
      table: "agent_keys",
      columns,
      same: "k.agent_id = w.agent_id",
      where: "",
      params: [],
      ...byAgent,
    };
  }
  const capabilities = {
    table: "capability_keys",
    columns: "w.id AS id, w.agent_id AS agentId",
    same: "k.id = w.id AND k.agent_id = w.agent_id",
  };
  if (id !== undefined) return { ...capabilities, where: "AND w.id = ?", params: [id], ...byAgent };
  const at = (place: Place) => [place.id, place.agentId];
  return { ...capabilities, where: "", params: [], order: "w.id, w.agent_id", at };
}
