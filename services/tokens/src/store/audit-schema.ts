/** Circumstances of each call, and ids that outlive the rows. */
export const AUDIT_OF_CALLS = `
      ALTER TABLE audit ADD COLUMN source TEXT NOT NULL DEFAULT 'tokens'; -- the service that decided
      ALTER TABLE audit ADD COLUMN call TEXT NOT NULL DEFAULT '{}';       -- JSON object: circumstances of the call
      ALTER TABLE audit ADD COLUMN record_ms BIGINT NOT NULL DEFAULT 0;   -- when it was appended
      UPDATE audit SET record_ms = time_ms;

      CREATE TABLE audit_state (         -- outlives the rows, so that no id is used twice
        id BIGINT PRIMARY KEY,           -- 1: there is one row
        last_id BIGINT NOT NULL
      );
      INSERT INTO audit_state (id, last_id) SELECT 1, COALESCE(MAX(id), 0) FROM audit`;

/** Batches of records that other services deliver. */
export const AUDIT_BATCHES = `
      CREATE TABLE audit_batches (       -- delivered by other services; a repeated one is recognized
        source TEXT NOT NULL,
        batch_id TEXT NOT NULL,
        record_ms BIGINT NOT NULL,
        PRIMARY KEY (source, batch_id)
      );
      CREATE INDEX audit_batches_by_time ON audit_batches (record_ms)`;

/** The hash chain of the records, and the seals of its days. */
export const AUDIT_SEALS = `
      -- The hash chain of the records, and the day that is open: heads are base64url, empty before the first record.
      ALTER TABLE audit_state ADD COLUMN head TEXT NOT NULL DEFAULT '';
      ALTER TABLE audit_state ADD COLUMN day TEXT NOT NULL DEFAULT '';
      ALTER TABLE audit_state ADD COLUMN first_id BIGINT NOT NULL DEFAULT 0;
      ALTER TABLE audit_state ADD COLUMN previous_head TEXT NOT NULL DEFAULT '';

      CREATE TABLE audit_seals (
        day TEXT NOT NULL PRIMARY KEY,   -- UTC, e.g. 2026-01-31
        first_id BIGINT NOT NULL,
        last_id BIGINT NOT NULL,
        previous_head TEXT NOT NULL,
        head TEXT NOT NULL,
        log_index BIGINT                 -- in the verifier's transparency log; null until it is there
      );
      CREATE INDEX audit_seals_to_log ON audit_seals (day) WHERE log_index IS NULL`;

/** The decisions on tool calls, by their request id. */
export const AUDIT_OF_TOOL_CALLS = `
      ALTER TABLE audit ADD COLUMN tool_request TEXT;   -- the request id of a decision on a tool call
      CREATE INDEX audit_tool_requests ON audit (tool_request, id) WHERE tool_request IS NOT NULL`;

/** The Merkle trees of the days. */
export const AUDIT_TREES = `
      -- The Merkle tree over the records of the open day; each day has a tree of its own. It counts while tree_first_id
      -- is first_id and tree_size is the day's number of records: a version without trees changes neither.
      ALTER TABLE audit_state ADD COLUMN tree_first_id BIGINT NOT NULL DEFAULT 0;
      ALTER TABLE audit_state ADD COLUMN tree_size BIGINT NOT NULL DEFAULT 0;
      ALTER TABLE audit_state ADD COLUMN frontier TEXT NOT NULL DEFAULT ''; -- base64url: hashes of complete subtrees

      ALTER TABLE audit_seals ADD COLUMN root TEXT NOT NULL DEFAULT '';     -- of the day's tree; empty without a tree
      ALTER TABLE audit_seals ADD COLUMN root_index BIGINT;                 -- as log_index, of the seal with its root
      CREATE INDEX audit_roots_to_log ON audit_seals (day) WHERE root <> '' AND root_index IS NULL;

      CREATE TABLE audit_nodes (
        first_id BIGINT NOT NULL,        -- the first record of the day
        level BIGINT NOT NULL,           -- 8 and above: a complete subtree of 2^level records
        node_index BIGINT NOT NULL,      -- the subtree's place among those of its level
        hashes BYTEA NOT NULL,           -- its hash; at level 0, the hashes of the tile's deleted records
        PRIMARY KEY (first_id, level, node_index)
      )`;
