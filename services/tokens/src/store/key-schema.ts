/** Keys that the platform keeps for their owners. */
export const KEPT_KEYS = `
      CREATE TABLE kept_keys (
        position BIGINT PRIMARY KEY,     -- in the order in which they were made
        id TEXT NOT NULL UNIQUE,
        owner TEXT NOT NULL,
        organization TEXT NOT NULL,      -- owns the key; empty for none
        request_id TEXT NOT NULL,        -- of a successor: a zero character and the id of the key before
        digest TEXT NOT NULL,
        principal TEXT NOT NULL UNIQUE,
        agent_id TEXT NOT NULL,
        sealed TEXT NOT NULL,            -- the secret, encrypted with the master key
        state TEXT NOT NULL,             -- active, replaced or revoked
        successor_id TEXT NOT NULL,
        create_ms BIGINT NOT NULL,
        end_ms BIGINT NOT NULL,          -- 0 while active
        UNIQUE (owner, request_id)
      );
      CREATE INDEX kept_keys_by_owner ON kept_keys (owner, position);
      CREATE INDEX kept_keys_by_age ON kept_keys (state, create_ms)`;

/** Replaced keys of agents that the registry does not know yet. */
export const AGENT_KEY_CHANGES = `
      CREATE TABLE agent_key_changes (   -- replaced keys of agents that the registry has not been told of
        key_id TEXT NOT NULL PRIMARY KEY,
        successor_id TEXT NOT NULL
      );
      CREATE INDEX agent_key_changes_by_successor ON agent_key_changes (successor_id)`;

/** The keys that sign projected tokens. */
export const JWT_KEYS = `
      CREATE TABLE jwt_keys (
        kid TEXT NOT NULL PRIMARY KEY,
        activate_ms BIGINT NOT NULL,     -- from when it signs
        jwk TEXT NOT NULL,               -- the public key, JSON
        sealed TEXT NOT NULL             -- the private key, encrypted with the master key
      )`;

/** Sessions of holders, and the time of the newest audit record. */
export const HOLDER_SESSIONS = `
      CREATE TABLE holder_sessions (     -- of replicas; a process without replicas has them in memory
        id TEXT NOT NULL PRIMARY KEY,
        principal TEXT NOT NULL,
        terms TEXT NOT NULL,             -- JSON
        sealed TEXT NOT NULL,            -- the session's key, encrypted with the master key
        expire_ms BIGINT NOT NULL
      );
      CREATE INDEX holder_sessions_by_principal ON holder_sessions (principal, expire_ms);
      CREATE INDEX holder_sessions_by_expiry ON holder_sessions (expire_ms);

      -- The time of the newest record: append times ascend although the clocks of replicas differ.
      ALTER TABLE audit_state ADD COLUMN last_ms BIGINT NOT NULL DEFAULT 0`;

/** The root keys, and their private keys. */
export const ROOT_KEYS = `
      CREATE TABLE root_keys (
        number BIGINT NOT NULL PRIMARY KEY, -- 1 for the first, without gaps
        principal TEXT NOT NULL UNIQUE,
        create_ms BIGINT NOT NULL,       -- from when it signs
        retire_ms BIGINT NOT NULL,       -- from when its tokens are denied; 0 while it signs
        retired BIGINT NOT NULL,         -- 1 once it stays retired whatever a clock says
        succession TEXT NOT NULL,        -- the statement of the key before, JSON; empty for a key of the key file
        caller TEXT NOT NULL,            -- of the rotation that made it, with request id and digest
        request_id TEXT NOT NULL,
        digest TEXT NOT NULL,
        change BIGINT NOT NULL           -- number of the last change of this row; ascends over all rows
      );
      CREATE INDEX root_keys_by_change ON root_keys (change);

      CREATE TABLE root_key_secrets (    -- erased when the key retires; none for a key of the key file
        principal TEXT NOT NULL PRIMARY KEY,
        sealed TEXT NOT NULL             -- the private key, encrypted with the master key
      )`;
