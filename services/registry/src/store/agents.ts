import { fromBinary, toBinary } from "@bufbuild/protobuf";
import {
  type Agent,
  AgentHealth,
  AgentSchema,
  type AgentStatus,
} from "@depute/contracts/depute/registry/v1/agent_pb";
import type { ReadTx, SqlValue, WriteTx } from "@depute/store";
import type { StoredAgent } from "../rules/agent.ts";

interface AgentRow {
  status: number;
  create_time: number;
  update_time: number;
  capability_ids: string;
  record: Uint8Array;
  heartbeat_time: number;
  expire_time: number;
}

const COLUMNS = `a.status, a.create_time, a.update_time, a.capability_ids, a.record, l.heartbeat_time, l.expire_time`;

/** The agent of that id, removed ones too. */
export async function findAgent(tx: ReadTx, id: string): Promise<StoredAgent | undefined> {
  const row = await tx.get<AgentRow>(
    `SELECT ${COLUMNS} FROM agents a JOIN leases l ON l.agent_id = a.id WHERE a.id = ?`,
    [id],
  );
  return row && toStored(row);
}

/** Writes a whole agent: a new one, or in place of the one with its id. */
export async function putAgent(tx: WriteTx, agent: StoredAgent): Promise<void> {
  const { record } = agent;
  await tx.run(
    `INSERT INTO agents
       (id, principal, organization, version, status, create_time, update_time, capability_ids, record)
     VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
     ON CONFLICT (id) DO UPDATE SET
       principal = excluded.principal, organization = excluded.organization, version = excluded.version,
       status = excluded.status, create_time = excluded.create_time, update_time = excluded.update_time,
       capability_ids = excluded.capability_ids, record = excluded.record`,
    [
      record.id,
      record.principal,
      record.organization,
      record.version,
      agent.status,
      agent.createTime,
      agent.updateTime,
      JSON.stringify(agent.capabilityIds),
      toBinary(AgentSchema, record),
    ],
  );
  await putLease(tx, record.id, agent.heartbeatTime, agent.expireTime);
}

/** Writes when an agent was last heard of and until when it counts as alive, in epoch ms. */
export async function putLease(
  tx: WriteTx,
  agentId: string,
  heartbeatTime: number,
  expireTime: number,
): Promise<void> {
  await tx.run(
    `INSERT INTO leases (agent_id, heartbeat_time, expire_time) VALUES (?, ?, ?)
     ON CONFLICT (agent_id) DO UPDATE SET
       heartbeat_time = excluded.heartbeat_time, expire_time = excluded.expire_time`,
    [agentId, heartbeatTime, expireTime],
  );
}

/** Which agents a list holds; empty members do not narrow it. */
export interface AgentFilter {
  readonly status: AgentStatus;
  readonly health: AgentHealth;
  readonly capabilityId: string;
  readonly organization: string;
  readonly principal: string;
}

/**
 * Agents in the order of their ids.
 *
 * @param after the id that the list goes on behind; empty for its beginning
 * @param now what health is told by, epoch ms
 */
export async function listAgents(
  tx: ReadTx,
  filter: AgentFilter,
  { after, limit, now }: { after: string; limit: number; now: number },
): Promise<StoredAgent[]> {
  const query = listQuery(filter, after, now);
  const rows = await tx.all<AgentRow>(`${query.sql} LIMIT ?`, [...query.params, limit]);
  return rows.map(toStored);
}

/** The list's statement without its limit. Exported so that a test can ask how it is run. */
export function listQuery(filter: AgentFilter, after: string, now: number) {
  const conditions: string[] = ["a.status = ?"];
  const params: SqlValue[] = [filter.status];
  const where = (condition: string, value: SqlValue) => {
    conditions.push(condition);
    params.push(value);
  };
  if (filter.organization !== "") where("a.organization = ?", filter.organization);
  if (filter.principal !== "") where("a.principal = ?", filter.principal);
  if (filter.health === AgentHealth.ALIVE) where("l.expire_time > ?", now);
  if (filter.health === AgentHealth.LOST) where("l.expire_time <= ?", now);
  const [tables, id] = tablesFor(filter);
  if (filter.capabilityId !== "") where("c.id = ?", filter.capabilityId);
  where(`${id} > ?`, after);
  return {
    sql: `SELECT ${COLUMNS} FROM ${tables} AND ${conditions.join(" AND ")} ORDER BY ${id}`,
    params,
  };
}

/** The tables, beginning with the one that the narrowest filter has an index of: a cross join keeps SQLite to the order. */
function tablesFor(filter: AgentFilter): [tables: string, id: string] {
  if (filter.capabilityId !== "") {
    const tables = "capabilities c CROSS JOIN agents a CROSS JOIN leases l";
    return [`${tables} WHERE a.id = c.agent_id AND l.agent_id = c.agent_id`, "c.agent_id"];
  }
  const named = filter.organization !== "" || filter.principal !== "";
  if (!named && filter.health === AgentHealth.LOST) {
    // The expression keeps SQLite from walking all leases in the order of their keys to save the sorting of a few.
    return ["leases l CROSS JOIN agents a WHERE a.id = l.agent_id", "(a.id || '')"];
  }
  return ["agents a CROSS JOIN leases l WHERE l.agent_id = a.id", "a.id"];
}

function toStored(row: AgentRow): StoredAgent {
  return {
    record: fromBinary(AgentSchema, row.record) satisfies Agent,
    status: row.status as AgentStatus,
    capabilityIds: JSON.parse(row.capability_ids) as string[],
    createTime: row.create_time,
    updateTime: row.update_time,
    heartbeatTime: row.heartbeat_time,
    expireTime: row.expire_time,
  };
}
