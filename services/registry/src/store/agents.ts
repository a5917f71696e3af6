import { fromBinary, toBinary } from "@bufbuild/protobuf";
import {
  type Agent,
  AgentHealth,
  AgentSchema,
  AgentStatus,
  AgentVisibility,
} from "@depute/contracts/depute/registry/v1/agent_pb";
import {
  bytes,
  integer,
  memberOf,
  nullable,
  type ReadCache,
  type ReadTx,
  type RowOf,
  row,
  type SqlValue,
  text,
  type WriteTx,
} from "@depute/store";
import { type LivenessView, NO_HEARTBEAT, type StoredAgent, type Viewer } from "../rules/agent.ts";
import { baseOf, organizationKey, searchKeys } from "../rules/registration.ts";
import { bindKey } from "./bound-keys.ts";
import { firstPassing } from "./first-passing.ts";
import { findPlaces, type Place } from "./key-walk.ts";
import { isVisible, replaceViewers, visibilityCondition } from "./visibility.ts";

const N_ROW = row({ n: integer });
const KNOWN_ROW = row({ visibility: integer, record: bytes });
const ID_ROW = row({ id: text });

/** The cache of agents. Every function that writes an agent also removes it from the cache. */
export interface AgentMemory {
  /** Recently read agents, by id. */
  readonly recent: ReadCache<StoredAgent>;
}

const AGENT_ROW = row({
  status: memberOf(AgentStatus),
  status_message: text,
  revision: integer,
  digest: text,
  own: nullable(bytes),
  create_time: integer,
  update_time: integer,
  capability_ids: text,
  record: bytes,
  heartbeat_time: integer,
  expire_time: integer,
});
type AgentRow = RowOf<typeof AGENT_ROW>;

const COLUMNS = `a.status, a.status_message, a.revision, a.digest, a.create_time, a.update_time, a.capability_ids,
  a.record, a.own, l.heartbeat_time, l.expire_time`;

/** Finds an agent by id, even if it was removed. */
export async function findAgent(tx: ReadTx, id: string): Promise<StoredAgent | undefined> {
  const row = await tx.get(
    AGENT_ROW,
    `SELECT ${COLUMNS} FROM agents a JOIN leases l ON l.agent_id = a.id WHERE a.id = ?`,
    [id],
  );
  return row && toStored(row);
}

/** Returns an agent that the viewer may see; undefined for any other agent. */
export async function findVisible(tx: ReadTx, id: string, viewer: Viewer): Promise<StoredAgent | undefined> {
  const agent = await findAgent(tx, id);
  return agent !== undefined && (await isVisible(tx, viewer, agent.record)) ? agent : undefined;
}

/** Returns the instances of an agent, including removed ones, in the order of their ids. */
export async function listInstances(tx: ReadTx, baseId: string, limit: number): Promise<StoredAgent[]> {
  const rows = await tx.all(
    AGENT_ROW,
    `SELECT ${COLUMNS} FROM agents a JOIN leases l ON l.agent_id = a.id
     WHERE a.base_id = ? ORDER BY a.id LIMIT ?`,
    [baseId, limit],
  );
  return rows.map(toStored);
}

/**
 * Returns the agents whose manifests bind a key, according to the table `bound_keys`. Includes removed agents. The
 * order is that of the ids.
 */
export async function listBoundAgents(
  tx: ReadTx,
  principal: string,
  after: string,
  limit: number,
): Promise<StoredAgent[]> {
  const rows = await tx.all(
    AGENT_ROW,
    `SELECT ${COLUMNS} FROM bound_keys k CROSS JOIN agents a CROSS JOIN leases l
     WHERE k.principal = ? AND k.agent_id > ? AND a.id = k.agent_id AND l.agent_id = k.agent_id
     ORDER BY k.agent_id LIMIT ?`,
    [principal, after, limit],
  );
  return rows.map(toStored);
}

/** Counts the instances of an agent, including removed ones. */
export async function countInstances(tx: ReadTx, baseId: string): Promise<number> {
  const row = await tx.get(N_ROW, "SELECT COUNT(*) AS n FROM agents WHERE base_id = ?", [baseId]);
  return row?.n ?? 0;
}

/** Inserts or replaces a whole record, with its viewers, search keys and bound key. */
export async function putRecord(tx: WriteTx, memory: AgentMemory, agent: StoredAgent): Promise<void> {
  const { record, ownerMembers: ownMembers } = agent;
  memory.recent.forget(tx, record.id);
  const baseId = baseOf(record.id) ?? null;
  const previousRow = await tx.get(KNOWN_ROW, "SELECT visibility, record FROM agents WHERE id = ?", [
    record.id,
  ]);
  await tx.run(
    `INSERT INTO agents
       (id, principal, organization, version, status, status_message, revision, digest, visibility, create_time,
        update_time, capability_ids, record, own, base_id)
     VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
     ON CONFLICT (id) DO UPDATE SET
       principal = excluded.principal, organization = excluded.organization, version = excluded.version,
       status = excluded.status, status_message = excluded.status_message, revision = excluded.revision,
       digest = excluded.digest, visibility = excluded.visibility, update_time = excluded.update_time,
       capability_ids = excluded.capability_ids, record = excluded.record, own = excluded.own`,
    [
      record.id,
      record.principal,
      record.organization,
      record.version,
      agent.status,
      agent.statusMessage,
      agent.revision,
      agent.digest,
      record.visibility || AgentVisibility.PUBLIC,
      agent.createTime,
      agent.updateTime,
      JSON.stringify(agent.capabilityIds),
      toBinary(AgentSchema, record),
      baseId === null ? null : toBinary(AgentSchema, ownMembers),
      baseId,
    ],
  );
  if (record.visibleTo.length > 0 || previousRow?.visibility === AgentVisibility.NAMED) {
    await replaceViewers(tx, record.id, record.visibleTo);
  }
  if (baseId === null) await bindKey(tx, agent);
  await putKeys(tx, record, previousRow && fromBinary(AgentSchema, previousRow.record));
}

/** Writes the search keys in which a record differs from the previous record. */
async function putKeys(tx: WriteTx, record: Agent, before: Agent | undefined): Promise<void> {
  const [keys, old] = [searchKeys(record), before === undefined ? [] : searchKeys(before)];
  const change = async (sql: string, changed: readonly string[]) => {
    if (changed.length > 0) await tx.run(sql, [record.id, JSON.stringify(changed)]);
  };
  await change(
    "DELETE FROM agent_keys WHERE agent_id = ? AND key IN (SELECT value FROM json_each(?))",
    old.filter((key) => !keys.includes(key)),
  );
  await change(
    "INSERT INTO agent_keys (agent_id, key) SELECT ?, value FROM json_each(?)",
    keys.filter((key) => !old.includes(key)),
  );
}

/** Updates an agent's status, capability ids and update time. Leaves the column with the record unchanged. */
export async function putState(tx: WriteTx, memory: AgentMemory, agent: StoredAgent): Promise<void> {
  memory.recent.forget(tx, agent.record.id);
  await tx.run(
    "UPDATE agents SET status = ?, status_message = ?, capability_ids = ?, update_time = ? WHERE id = ?",
    [
      agent.status,
      agent.statusMessage,
      JSON.stringify(agent.capabilityIds),
      agent.updateTime,
      agent.record.id,
    ],
  );
}

/** The filter of a list of agents. `status` always applies; each other member, if empty, matches all agents. */
export interface AgentFilter {
  readonly status: AgentStatus;
  readonly health: AgentHealth;
  readonly capabilityId: string;
  readonly organization: string;
  readonly principal: string;
  /** Tags and protocols in the form of `searchKeys`. The list contains agents with all of these keys. */
  readonly keys: readonly string[];
}

/** The part of a list to read, its viewer and the reference time of liveness. */
export interface AgentPage {
  /** The id after which the list starts; empty for the beginning. */
  readonly after: string;
  readonly limit: number;
  readonly view: LivenessView;
  readonly viewer: Viewer;
}

/**
 * Limits of the cost of one list: the rows that one SQL statement reads (WALK), and the number of statements
 * (MAX_WALKS).
 */
const WALK = 2_000;
const MAX_WALKS = 5;

/**
 * The agents of a list. `stoppedAt` is the last id that the list read if the list stopped early; otherwise undefined.
 */
export interface AgentList {
  readonly agents: readonly StoredAgent[];
  readonly stoppedAt: string | undefined;
}

/** Returns at most `limit` visible agents in the order of their ids. Reads a bounded number of rows. */
export async function listAgents(tx: ReadTx, filter: AgentFilter, page: AgentPage): Promise<AgentList> {
  return filter.keys.length === 0 ? walkAgents(tx, filter, page) : listByKeys(tx, filter, page);
}

async function listByKeys(tx: ReadTx, filter: AgentFilter, page: AgentPage): Promise<AgentList> {
  const { capabilityId, organization } = filter;
  const id = capabilityId || undefined;
  const query = {
    resource: id === undefined ? ("agents" as const) : ("capabilities" as const),
    keys: organization === "" ? filter.keys : [...filter.keys, organizationKey(organization)],
    id,
  };
  const { items, stoppedAt } = await firstPassing(
    { id: capabilityId, agentId: page.after },
    page.limit,
    (after, limit) => findPlaces(tx, query, after, limit),
    (places) => agentsAt(tx, filter, places, page),
  );
  return { agents: items, stoppedAt: stoppedAt?.agentId };
}

async function walkAgents(tx: ReadTx, filter: AgentFilter, page: AgentPage): Promise<AgentList> {
  const agents: StoredAgent[] = [];
  let { after } = page;
  for (let walks = 0; walks < MAX_WALKS; walks++) {
    const until = await walkEnd(tx, filter, after);
    const query = listQuery(filter, { ...page, after, until });
    const limit = page.limit - agents.length;
    const rows = await tx.all(AGENT_ROW, `${query.sql} LIMIT ?`, [...query.params, limit]);
    agents.push(...rows.map(toStored));
    if (until === undefined || agents.length >= page.limit) return { agents, stoppedAt: undefined };
    after = until;
  }
  return { agents, stoppedAt: after };
}

/**
 * Reads the agents at the given places, in the order of their ids. Omits agents that the viewer may not see, and
 * agents that fail the filter.
 */
async function agentsAt(
  tx: ReadTx,
  filter: AgentFilter,
  places: readonly Place[],
  { view, viewer }: AgentPage,
): Promise<StoredAgent[]> {
  const { conditions, params } = agentConditions(filter, view, viewer);
  const rows = await tx.all(
    AGENT_ROW,
    `SELECT ${COLUMNS} FROM json_each(?) j CROSS JOIN agents a CROSS JOIN leases l
     WHERE a.id = j.value AND l.agent_id = a.id AND ${conditions.join(" AND ")}
     ORDER BY a.id`,
    [JSON.stringify(places.map(({ agentId }) => agentId)), ...params],
  );
  return rows.map(toStored);
}

/** Returns the id of the `WALK`th row after the id `after`; undefined if fewer rows follow. */
async function walkEnd(tx: ReadTx, filter: AgentFilter, after: string): Promise<string | undefined> {
  const [id, table, condition, params] = walkBy(filter);
  const row = await tx.get(
    ID_ROW,
    `SELECT ${id} AS id FROM ${table} WHERE ${condition} AND ${id} > ? ORDER BY ${id} LIMIT 1 OFFSET ?`,
    [...params, after, WALK - 1],
  );
  return row?.id;
}

/** Returns the table and the SQL condition by which a list reads its rows in the order of an index. */
function walkBy(filter: AgentFilter): [id: string, table: string, condition: string, params: SqlValue[]] {
  const { capabilityId, organization, principal, status } = filter;
  if (capabilityId !== "") return ["agent_id", "capabilities", "id = ?", [capabilityId]];
  if (organization !== "") return ["id", "agents", "organization = ? AND status = ?", [organization, status]];
  if (principal !== "") return ["id", "agents", "principal = ? AND status = ?", [principal, status]];
  return ["id", "agents", "status = ?", [status]];
}

/** Returns the SQL statement of a list, without its LIMIT clause. Exported so that tests can read its query plan. */
export function listQuery(
  filter: AgentFilter,
  { after, until, view, viewer }: Omit<AgentPage, "limit"> & { until?: string | undefined },
) {
  const { conditions, params } = agentConditions(filter, view, viewer);
  const where = (condition: string, ...values: SqlValue[]) => {
    conditions.push(condition);
    params.push(...values);
  };
  const [tables, id] = tablesFor(filter);
  if (filter.capabilityId !== "") where("c.id = ?", filter.capabilityId);
  where(`${id} > ?`, after);
  if (until !== undefined) where(`${id} <= ?`, until);
  return {
    sql: `SELECT ${COLUMNS} FROM ${tables} AND ${conditions.join(" AND ")} ORDER BY ${id}`,
    params,
  };
}

/** Returns the SQL conditions of a filter on `agents a` and `leases l`, except those on capabilities. */
function agentConditions(filter: AgentFilter, view: LivenessView, viewer: Viewer) {
  const conditions: string[] = ["a.status = ?"];
  const params: SqlValue[] = [filter.status];
  const where = (condition: string, ...values: SqlValue[]) => {
    conditions.push(condition);
    params.push(...values);
  };
  if (filter.organization !== "") where("a.organization = ?", filter.organization);
  if (filter.principal !== "") where("a.principal = ?", filter.principal);
  if (filter.health === AgentHealth.ALIVE)
    where("l.expire_time > ? AND l.heartbeat_time <> ?", view.now, NO_HEARTBEAT);
  if (filter.health === AgentHealth.UNKNOWN)
    where("l.expire_time > ? AND l.heartbeat_time = ?", view.now, NO_HEARTBEAT);
  if (filter.health === AgentHealth.SUSPECT)
    where("l.expire_time > ? AND l.expire_time <= ?", view.asOf, view.now);
  if (filter.health === AgentHealth.LOST) where("l.expire_time <= ?", view.asOf);
  const sight = visibilityCondition(viewer);
  if (sight.sql !== "") where(sight.sql, ...sight.params);
  return { conditions, params };
}

/**
 * Returns the tables with their join conditions, and the expression for the agent's id. The table whose index selects
 * the fewest rows is the first; the cross joins make SQLite keep this order.
 */
function tablesFor(filter: AgentFilter): [tables: string, id: string] {
  if (filter.capabilityId !== "") {
    const tables = "capabilities c CROSS JOIN agents a CROSS JOIN leases l";
    return [`${tables} WHERE a.id = c.agent_id AND l.agent_id = c.agent_id`, "c.agent_id"];
  }
  const isByOwner = filter.organization !== "" || filter.principal !== "";
  if (!isByOwner && (filter.health === AgentHealth.SUSPECT || filter.health === AgentHealth.LOST)) {
    // Without this concatenation, SQLite would walk all leases in key order to avoid a sort of a few rows.
    return ["leases l CROSS JOIN agents a WHERE a.id = l.agent_id", "(a.id || '')"];
  }
  return ["agents a CROSS JOIN leases l WHERE l.agent_id = a.id", "a.id"];
}

function toStored(row: AgentRow): StoredAgent {
  const record: Agent = fromBinary(AgentSchema, row.record);
  return {
    record,
    ownerMembers: row.own === null ? record : fromBinary(AgentSchema, row.own),
    status: row.status,
    statusMessage: row.status_message,
    revision: row.revision,
    digest: row.digest,
    capabilityIds: JSON.parse(row.capability_ids) as string[],
    createTime: row.create_time,
    updateTime: row.update_time,
    heartbeatTime: row.heartbeat_time,
    expireTime: row.expire_time,
  };
}
