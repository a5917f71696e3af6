import type { Migration } from "@depute/store";

/**
 * Times are milliseconds since the Unix epoch. Column types are named so that SQLite and Postgres both take them.
 *
 * A lease is a row of its own: a heartbeat is the most frequent write, and rewrites two numbers, not a manifest.
 */
export const migrations: readonly Migration[] = [
  {
    id: 1,
    name: "agents and capabilities",
    sql: `
      CREATE TABLE agents (
        id TEXT PRIMARY KEY,
        principal TEXT NOT NULL,
        organization TEXT NOT NULL,
        version TEXT NOT NULL,
        status BIGINT NOT NULL,          -- AgentStatus
        create_time BIGINT NOT NULL,
        update_time BIGINT NOT NULL,
        capability_ids TEXT NOT NULL,    -- JSON array, in the order of publication
        record BYTEA NOT NULL            -- Agent, what its owner registered
      );
      CREATE INDEX agents_by_status ON agents (status, id);
      CREATE INDEX agents_by_organization ON agents (organization, status, id);
      CREATE INDEX agents_by_principal ON agents (principal, status, id);

      CREATE TABLE leases (
        agent_id TEXT PRIMARY KEY REFERENCES agents (id),
        heartbeat_time BIGINT NOT NULL,
        expire_time BIGINT NOT NULL      -- the greatest exact number where there is no lease
      );
      CREATE INDEX leases_by_expiry ON leases (expire_time);

      CREATE TABLE capabilities (
        agent_id TEXT NOT NULL REFERENCES agents (id),
        id TEXT NOT NULL,
        category TEXT NOT NULL,
        category_key TEXT NOT NULL,      -- the category as it is compared
        digest TEXT NOT NULL,            -- 64 digits, of which the version hash is a prefix
        words TEXT NOT NULL,             -- what free text is searched in
        record BYTEA NOT NULL,           -- nekte.v1.CapabilityFull, without its hash
        PRIMARY KEY (agent_id, id)
      );
      CREATE INDEX capabilities_by_id ON capabilities (id, agent_id);
      CREATE INDEX capabilities_by_category ON capabilities (category_key, id, agent_id);

      CREATE TABLE requests (
        caller TEXT NOT NULL,
        request_id TEXT NOT NULL,
        digest TEXT NOT NULL,
        answer BYTEA NOT NULL,
        create_time BIGINT NOT NULL,
        PRIMARY KEY (caller, request_id)
      );
      CREATE INDEX requests_by_time ON requests (create_time)`,
  },
];
