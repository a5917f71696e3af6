import { AuthoritySource } from "@depute/contracts/depute/registry/v1/authority_service_pb";
import { integer, memberOf, type ReadTx, row, text, type WriteTx } from "@depute/store";

const AGENT_ID_ROW = row({ agent_id: text });

/** The tables for grants of authorities, and for the agent of each URI. */
export const AUTHORITIES = `
      CREATE TABLE authority_grants (
        authority TEXT NOT NULL,         -- a host name in lower case
        principal TEXT NOT NULL,
        source BIGINT NOT NULL,          -- AuthoritySource
        granted_by TEXT NOT NULL,
        create_time BIGINT NOT NULL,
        organization TEXT NOT NULL,      -- that owns the grant; empty for none
        PRIMARY KEY (authority, principal)
      );
      CREATE TABLE agent_uris (
        uri TEXT PRIMARY KEY,            -- of the card that the agent's owner registered
        agent_id TEXT NOT NULL REFERENCES agents (id)
      );
      CREATE UNIQUE INDEX agent_uris_by_agent ON agent_uris (agent_id)`;

/** The grant of an authority to a principal. The time is epoch milliseconds. */
export interface StoredGrant {
  readonly authority: string;
  readonly principal: string;
  readonly source: AuthoritySource;
  readonly grantedBy: string;
  readonly createTime: number;
  /**
   * The organization that owns the grant: the grantor's only organization; empty if the grantor has none or several.
   */
  readonly organization: string;
}

/** A grant without the members that the store adds. */
export type NewGrant = Omit<StoredGrant, "createTime" | "organization">;

const GRANT_ROW = row({
  authority: text,
  principal: text,
  source: memberOf(AuthoritySource),
  granted_by: text,
  create_time: integer,
  organization: text,
});

const COLUMNS = "authority, principal, source, granted_by, create_time, organization";

/** Returns the grants of an authority in the order of their principals, starting after `after`. */
export async function listGrants(
  tx: ReadTx,
  authority: string,
  after: string,
  limit: number,
): Promise<StoredGrant[]> {
  const rows = await tx.all(
    GRANT_ROW,
    `SELECT ${COLUMNS} FROM authority_grants WHERE authority = ? AND principal > ? ORDER BY principal LIMIT ?`,
    [authority, after, limit],
  );
  return rows.map(({ granted_by, create_time, ...row }) => ({
    ...row,
    grantedBy: granted_by,
    createTime: create_time,
  }));
}

/** Inserts a grant, or replaces the principal's grant. */
export async function putGrant(tx: WriteTx, grant: StoredGrant): Promise<void> {
  await tx.run(
    `INSERT INTO authority_grants (${COLUMNS}) VALUES (?, ?, ?, ?, ?, ?)
     ON CONFLICT (authority, principal) DO UPDATE SET source = excluded.source, granted_by = excluded.granted_by,
       create_time = excluded.create_time, organization = excluded.organization`,
    [grant.authority, grant.principal, grant.source, grant.grantedBy, grant.createTime, grant.organization],
  );
}

export async function removeGrant(tx: WriteTx, authority: string, principal: string): Promise<void> {
  await tx.run("DELETE FROM authority_grants WHERE authority = ? AND principal = ?", [authority, principal]);
}

/** Returns the id of the agent that has a URI; undefined for none. */
export async function findAgentOfUri(tx: ReadTx, uri: string): Promise<string | undefined> {
  const row = await tx.get(AGENT_ID_ROW, "SELECT agent_id FROM agent_uris WHERE uri = ?", [uri]);
  return row?.agent_id;
}

/**
 * Assigns a URI to an agent, in place of the agent's previous URI, and takes the URI from any other agent. Undefined
 * only removes the previous URI.
 */
export async function putUri(tx: WriteTx, agentId: string, uri: string | undefined): Promise<void> {
  await tx.run("DELETE FROM agent_uris WHERE agent_id = ?", [agentId]);
  if (uri === undefined) return;
  await tx.run(
    `INSERT INTO agent_uris (uri, agent_id) VALUES (?, ?)
     ON CONFLICT (uri) DO UPDATE SET agent_id = excluded.agent_id`,
    [uri, agentId],
  );
}
