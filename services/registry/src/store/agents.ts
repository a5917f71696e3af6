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
import type { AgentIndex } from "../agent-index/agent-index.ts";
import type { StoredAgent } from "../rules/agent.ts";
import { type LivenessView, NO_HEARTBEAT } from "../rules/liveness.ts";
import { baseOf } from "../rules/registration.ts";
import { bindKey } from "./bound-keys.ts";
import { indexAgent } from "./indexing.ts";
import { putViewers, sees, sightCondition, type Viewer } from "./sight.ts";

const N_ROW = row({ n: integer });
const VISIBILITY_ROW = row({ visibility: integer });
const ID_ROW = row({ id: text });

/** What is held in memory of agents; the functions that write an agent keep it true. */
export interface AgentMemory {
  readonly index: AgentIndex;
  /** Agents that were asked for last, by their ids. */
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

/** The agent of that id, removed ones too. */
export async function findAgent(tx: ReadTx, id: string): Promise<StoredAgent | undefined> {
  const row = await tx.get(
    AGENT_ROW,
    `SELECT ${COLUMNS} FROM agents a JOIN leases l ON l.agent_id = a.id WHERE a.id = ?`,
    [id],
  );
  return row && toStored(row);
}

/** The same for a viewer: an agent that is not to be seen is none. */
export async function findVisible(tx: ReadTx, id: string, viewer: Viewer): Promise<StoredAgent | undefined> {
  const agent = await findAgent(tx, id);
  return agent !== undefined && (await sees(tx, viewer, agent.record)) ? agent : undefined;
}

/** The instances of an agent, removed ones too, in the order of their ids. */
export async function listInstances(tx: ReadTx, baseId: string, limit: number): Promise<StoredAgent[]> {
  const rows = await tx.all(
    AGENT_ROW,
    `SELECT ${COLUMNS} FROM agents a JOIN leases l ON l.agent_id = a.id
     WHERE a.base_id = ? ORDER BY a.id LIMIT ?`,
    [baseId, limit],
  );
  return rows.map(toStored);
}

/** Agents that `bound_keys` names for a key, removed ones too, in the order of their ids. */
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

/** How many instances an agent has, removed ones too. */
export async function countInstances(tx: ReadTx, baseId: string): Promise<number> {
  const row = await tx.get(N_ROW, "SELECT COUNT(*) AS n FROM agents WHERE base_id = ?", [baseId]);
  return row?.n ?? 0;
}

/** Writes a whole record: a new one, or in place of the one with its id; whom it is visible to and what it is found by, too. */
export async function putRecord(tx: WriteTx, memory: AgentMemory, agent: StoredAgent): Promise<void> {
  const { record, own } = agent;
  memory.recent.forget(tx, record.id);
  const baseId = baseOf(record.id) ?? null;
  const known = await tx.get(VISIBILITY_ROW, "SELECT visibility FROM agents WHERE id = ?", [record.id]);
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
      baseId === null ? null : toBinary(AgentSchema, own),
      baseId,
    ],
  );
  if (record.visibleTo.length > 0 || known?.visibility === AgentVisibility.NAMED) {
    await putViewers(tx, record.id, record.visibleTo);
  }
  if (baseId === null) await bindKey(tx, agent);
  await indexAgent(tx, memory.index, agent);
}

/** Writes what changes without a new record: the status, the capabilities' ids, the time of the change. */
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
  await indexAgent(tx, memory.index, agent);
}

/** Which agents a list holds; empty members do not narrow it. */
export interface AgentFilter {
  readonly status: AgentStatus;
  readonly health: AgentHealth;
  readonly capabilityId: string;
  readonly organization: string;
  readonly principal: string;
}

/** Where a list goes on, and for whom and when it is read. */
export interface AgentPage {
  /** The id that the list goes on behind; empty for its beginning. */
  readonly after: string;
  readonly limit: number;
  readonly view: LivenessView;
  readonly viewer: Viewer;
}

/** Agents looked at in one statement, and statements of one list: what one call may cost, however few it finds. */
const WALK = 2_000;
const MAX_WALKS = 5;

/** What a list found, and the id behind which it did not look any more when it stopped early. */
export interface AgentList {
  readonly agents: readonly StoredAgent[];
  readonly stoppedAt: string | undefined;
}

/** Agents that the viewer sees, in the order of their ids: at most `limit`, of a bounded stretch of the list. */
export async function listAgents(tx: ReadTx, filter: AgentFilter, page: AgentPage): Promise<AgentList> {
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

/** The next agents of a list, `limit` at most, however far they are away. */
export async function agentsBehind(tx: ReadTx, filter: AgentFilter, page: AgentPage): Promise<StoredAgent[]> {
  const { sql, params } = listQuery(filter, page);
  return (await tx.all(AGENT_ROW, `${sql} LIMIT ?`, [...params, page.limit])).map(toStored);
}

/** Those of some agents that a filter keeps and the viewer sees, in the order of their ids. */
export async function agentsAmong(
  tx: ReadTx,
  filter: AgentFilter,
  ids: readonly string[],
  { view, viewer }: AgentPage,
): Promise<StoredAgent[]> {
  const { conditions, params } = agentConditions(filter, view, viewer);
  const offered = "EXISTS (SELECT 1 FROM capabilities c WHERE c.agent_id = a.id AND c.id = ?)";
  const byCapability = filter.capabilityId !== "";
  const rows = await tx.all(
    AGENT_ROW,
    `SELECT ${COLUMNS} FROM json_each(?) j CROSS JOIN agents a CROSS JOIN leases l
     WHERE a.id = j.value AND l.agent_id = a.id AND ${[...conditions, ...(byCapability ? [offered] : [])].join(" AND ")}
     ORDER BY a.id`,
    [JSON.stringify(ids), ...params, ...(byCapability ? [filter.capabilityId] : [])],
  );
  return rows.map(toStored);
}

/** The last id of the next stretch of the list; undefined when it goes to the end. */
async function walkEnd(tx: ReadTx, filter: AgentFilter, after: string): Promise<string | undefined> {
  const [id, table, condition, params] = walkBy(filter);
  const row = await tx.get(
    ID_ROW,
    `SELECT ${id} AS id FROM ${table} WHERE ${condition} AND ${id} > ? ORDER BY ${id} LIMIT 1 OFFSET ?`,
    [...params, after, WALK - 1],
  );
  return row?.id;
}

/** The index that a list walks along. */
function walkBy(filter: AgentFilter): [id: string, table: string, condition: string, params: SqlValue[]] {
  const { capabilityId, organization, principal, status } = filter;
  if (capabilityId !== "") return ["agent_id", "capabilities", "id = ?", [capabilityId]];
  if (organization !== "") return ["id", "agents", "organization = ? AND status = ?", [organization, status]];
  if (principal !== "") return ["id", "agents", "principal = ? AND status = ?", [principal, status]];
  return ["id", "agents", "status = ?", [status]];
}

/** The list's statement without its limit. Exported so that a test can ask how it is run. */
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

/** What an agent has to meet, on `agents a` and `leases l`, but for what it offers. */
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
  const sight = sightCondition(viewer);
  if (sight.sql !== "") where(sight.sql, ...sight.params);
  return { conditions, params };
}

/** The tables, beginning with the one that the narrowest filter has an index of: a cross join keeps SQLite to the order. */
function tablesFor(filter: AgentFilter): [tables: string, id: string] {
  if (filter.capabilityId !== "") {
    const tables = "capabilities c CROSS JOIN agents a CROSS JOIN leases l";
    return [`${tables} WHERE a.id = c.agent_id AND l.agent_id = c.agent_id`, "c.agent_id"];
  }
  const named = filter.organization !== "" || filter.principal !== "";
  if (!named && (filter.health === AgentHealth.SUSPECT || filter.health === AgentHealth.LOST)) {
    // The expression keeps SQLite from walking all leases in the order of their keys to save the sorting of a few.
    return ["leases l CROSS JOIN agents a WHERE a.id = l.agent_id", "(a.id || '')"];
  }
  return ["agents a CROSS JOIN leases l WHERE l.agent_id = a.id", "a.id"];
}

function toStored(row: AgentRow): StoredAgent {
  const record: Agent = fromBinary(AgentSchema, row.record);
  return {
    record,
    own: row.own === null ? record : fromBinary(AgentSchema, row.own),
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
