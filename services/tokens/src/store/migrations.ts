import { type Migration, requestTableSql } from "@depute/store";
import {
  AUDIT_BATCHES,
  AUDIT_OF_CALLS,
  AUDIT_OF_TOOL_CALLS,
  AUDIT_SEALS,
  AUDIT_TREES,
} from "./audit-schema.ts";
import { AGENT_KEY_CHANGES, HOLDER_SESSIONS, JWT_KEYS, KEPT_KEYS, ROOT_KEYS } from "./key-schema.ts";

/**
 * The database schema of the tokens service. Times are epoch milliseconds. Both SQLite and Postgres accept the names of
 * the column types. The store contains no token, and the master key seals all private keys in it. So no party can make
 * a token from the store's data alone. The store contains the ids, signers and delegatees of blocks, and the unsigned
 * authorities of minted tokens.
 */
export const migrations: readonly Migration[] = [
  {
    id: 1,
    name: "blocks, revocations, proofs, audit",
    sql: `
      -- A block's id does not cover what is above it, so the same block may stand in several chains.
      CREATE TABLE blocks (
        revocation_id TEXT NOT NULL,
        parent_id TEXT NOT NULL,         -- the block above; empty for an authority
        signer TEXT NOT NULL,
        delegatee TEXT NOT NULL,
        delegation_id TEXT NOT NULL,
        contract_id TEXT NOT NULL,
        expires_ms BIGINT NOT NULL,      -- the latest at which it can still count
        record_ms BIGINT NOT NULL,
        PRIMARY KEY (revocation_id, parent_id)
      );
      CREATE INDEX blocks_by_delegation ON blocks (delegation_id);
      CREATE INDEX blocks_by_signer ON blocks (signer, revocation_id);

      CREATE TABLE revocations (
        sequence BIGINT PRIMARY KEY,     -- 1, 2, 3, ... without gaps
        revocation_id TEXT NOT NULL,
        revoked_by TEXT NOT NULL,
        scope TEXT NOT NULL,             -- block or chain
        revoked_at TEXT NOT NULL,        -- what the revoker says
        signature TEXT NOT NULL,
        record_ms BIGINT NOT NULL,
        UNIQUE (revocation_id, revoked_by, scope)
      );

      CREATE TABLE pending_revocations (
        position BIGINT PRIMARY KEY,     -- 1, 2, 3, ...; the last row stays, so that a reader's cursor stays right
        revocation_id TEXT NOT NULL,     -- of a block; of scope key the statement's own
        revoked_by TEXT NOT NULL,
        scope TEXT NOT NULL,             -- block, chain or key
        revoked_at TEXT NOT NULL,
        signature TEXT NOT NULL,
        record_ms BIGINT NOT NULL,
        settled BIGINT NOT NULL,         -- 1 once its right was proved and the log has it
        keep_before TEXT,                -- of scope key
        caller TEXT NOT NULL,            -- who brought it
        expire_ms BIGINT NOT NULL,       -- when it is forgotten; 0 for never: its revoker was known
        UNIQUE (revocation_id, revoked_by, scope)
      );
      CREATE INDEX pending_by_revoker ON pending_revocations (revoked_by, settled);
      CREATE INDEX pending_by_expiry ON pending_revocations (expire_ms) WHERE expire_ms > 0;

      CREATE TABLE seen_proofs (
        principal TEXT NOT NULL,
        jti TEXT NOT NULL,
        kind BIGINT NOT NULL,            -- 1: came with a token whose chain holds; 0: of anybody
        forget_ms BIGINT NOT NULL,       -- when it may be forgotten: its time refuses it
        PRIMARY KEY (principal, jti)
      );
      CREATE INDEX seen_proofs_by_time ON seen_proofs (forget_ms);

${requestTableSql("mint_requests")};

      CREATE TABLE audit (
        id BIGINT PRIMARY KEY,           -- 1, 2, 3, ...
        time_ms BIGINT NOT NULL,
        kind TEXT NOT NULL,
        caller TEXT NOT NULL,            -- who made the call
        principal TEXT NOT NULL,         -- whose authority it was about; empty where nobody's was proved
        decision TEXT NOT NULL,          -- allowed or denied
        reason TEXT NOT NULL,
        blocks TEXT NOT NULL             -- JSON array of revocation ids
      );
      CREATE INDEX audit_by_time ON audit (time_ms)`,
  },
  {
    id: 2,
    name: "spend",
    sql: `
      CREATE TABLE spend (
        revocation_id TEXT NOT NULL PRIMARY KEY,
        spent BIGINT NOT NULL,           -- microcents charged
        held BIGINT NOT NULL,            -- microcents of reservations that nobody has settled, those that are over too
        open BIGINT NOT NULL,            -- how many those are
        forget_ms BIGINT NOT NULL        -- when nothing can be spent under the block any more, and nothing settled
      );
      CREATE INDEX spend_by_time ON spend (forget_ms);

      CREATE TABLE reservations (
        id TEXT NOT NULL PRIMARY KEY,
        caller TEXT NOT NULL,
        organization TEXT NOT NULL,      -- owns the reservation; empty for none
        request_id TEXT NOT NULL,
        digest TEXT NOT NULL,
        state TEXT NOT NULL,             -- held, committed or released; held past expire_ms is expired
        amount BIGINT NOT NULL,
        charged BIGINT NOT NULL,
        blocks TEXT NOT NULL,            -- JSON array of revocation ids, the authority's first
        create_ms BIGINT NOT NULL,
        expire_ms BIGINT NOT NULL,
        forget_ms BIGINT NOT NULL,
        UNIQUE (caller, request_id)
      );
      CREATE INDEX reservations_by_time ON reservations (forget_ms);

      CREATE TABLE open_spend (          -- what is held, by block; a row is removed when its reservation is settled
        revocation_id TEXT NOT NULL,
        reservation_id TEXT NOT NULL,
        amount BIGINT NOT NULL,
        expire_ms BIGINT NOT NULL,
        PRIMARY KEY (revocation_id, reservation_id)
      );
      CREATE INDEX open_spend_by_time ON open_spend (revocation_id, expire_ms)`,
  },
  {
    id: 3,
    name: "delegations",
    sql: `
      CREATE TABLE delegations (
        position BIGINT PRIMARY KEY,     -- in the order of recording
        chain_id TEXT NOT NULL UNIQUE,   -- digest of the revocation ids from the authority's down to this block's
        parent_chain_id TEXT NOT NULL,   -- empty at a root
        delegation_id TEXT NOT NULL,     -- its delegator chose it: not unique
        parent_delegation_id TEXT NOT NULL,
        revocation_id TEXT NOT NULL,
        root_id TEXT NOT NULL,           -- the authority's revocation id
        from_principal TEXT NOT NULL,
        to_principal TEXT NOT NULL,
        organization TEXT NOT NULL,      -- owns the delegation; empty for none
        contract_id TEXT NOT NULL,
        depth BIGINT NOT NULL,
        status TEXT NOT NULL,            -- active, completed, failed or revoked
        create_ms BIGINT NOT NULL,
        expire_ms BIGINT NOT NULL,
        end_ms BIGINT NOT NULL,          -- 0 while active
        attestation_id TEXT NOT NULL
      );
      CREATE INDEX delegations_by_id ON delegations (delegation_id, position);
      CREATE INDEX delegations_by_block ON delegations (revocation_id);
      CREATE INDEX delegations_by_from ON delegations (from_principal, position);
      CREATE INDEX delegations_by_to ON delegations (to_principal, position);
      CREATE INDEX delegations_by_contract ON delegations (contract_id, position);
      CREATE INDEX delegations_by_status ON delegations (status, position);
      CREATE INDEX delegations_by_expiry ON delegations (expire_ms);

      CREATE TABLE delegation_blocks (   -- which delegations have a block in their chain
        revocation_id TEXT NOT NULL,
        position BIGINT NOT NULL,
        PRIMARY KEY (revocation_id, position)
      );

      CREATE TABLE cascades (            -- revocations of scope chain that have not reached everything below yet
        revocation_id TEXT NOT NULL PRIMARY KEY,
        after_position BIGINT NOT NULL
      )`,
  },
  {
    id: 4,
    name: "sealed log, revoked keys",
    sql: `
      -- Of a pruned place the sequence, digest and head stay; scope is then pruned. Scope key: see key_revocations.
      ALTER TABLE revocations ADD COLUMN digest TEXT NOT NULL DEFAULT '';
      ALTER TABLE revocations ADD COLUMN head TEXT NOT NULL DEFAULT '';

      -- The block's own expiry, which no chain that it stands in can outlive; 0 where it states none.
      ALTER TABLE blocks ADD COLUMN own_expire_ms BIGINT NOT NULL DEFAULT 0;

      CREATE TABLE key_revocations (
        sequence BIGINT PRIMARY KEY,     -- its place in the log
        principal TEXT NOT NULL,
        keep_before TEXT NOT NULL        -- as it was signed
      );
      CREATE INDEX key_revocations_by_key ON key_revocations (principal);
      CREATE INDEX revocations_by_revoker ON revocations (revoked_by, record_ms);
      CREATE INDEX blocks_by_delegatee ON blocks (delegatee);

      CREATE TABLE key_sweeps (          -- revoked keys whose recorded blocks are not all revoked yet
        sequence BIGINT PRIMARY KEY,
        after_block TEXT NOT NULL
      )`,
  },
  {
    id: 5,
    name: "peers, housekeeping",
    sql: `
      CREATE TABLE peer_cursors (
        kind TEXT NOT NULL,              -- push: of our log; poll: of theirs
        address TEXT NOT NULL,
        sequence BIGINT NOT NULL,
        PRIMARY KEY (kind, address)
      );
      CREATE INDEX blocks_by_own_expiry ON blocks (own_expire_ms);

      -- Of the block that is revoked; 0 where it is not known, and then the entry is kept.
      ALTER TABLE revocations ADD COLUMN own_expire_ms BIGINT NOT NULL DEFAULT 0;
      CREATE INDEX revocations_by_own_expiry ON revocations (own_expire_ms);
      CREATE INDEX delegation_blocks_by_position ON delegation_blocks (position)`,
  },
  {
    id: 6,
    name: "kept keys",
    sql: KEPT_KEYS,
  },
  {
    id: 7,
    name: "bindings",
    sql: `
      CREATE TABLE block_bindings (
        revocation_id TEXT NOT NULL PRIMARY KEY,
        audiences TEXT NOT NULL,         -- JSON array of addresses; empty for any
        tenants TEXT NOT NULL            -- JSON array; empty for any
      )`,
  },
  {
    id: 8,
    name: "agents' keys",
    sql: AGENT_KEY_CHANGES,
  },
  {
    id: 9,
    name: "proofs in memory",
    sql: `
      -- Proofs that were made up to this time may have been used without standing in seen_proofs; see SeenProofs.
      CREATE TABLE proof_horizon (
        id BIGINT PRIMARY KEY,           -- 1: there is one row
        horizon_ms BIGINT NOT NULL
      );
      INSERT INTO proof_horizon (id, horizon_ms) VALUES (1, 0)`,
  },
  {
    id: 10,
    name: "blocks for one use",
    sql: `
      ALTER TABLE block_bindings ADD COLUMN single_use BIGINT NOT NULL DEFAULT 0;

      CREATE TABLE used_blocks (         -- blocks for one use that were used
        revocation_id TEXT NOT NULL PRIMARY KEY,
        expire_ms BIGINT NOT NULL        -- when the token of that use is over; its block is at the latest
      );
      CREATE INDEX used_blocks_by_expiry ON used_blocks (expire_ms)`,
  },
  {
    id: 11,
    name: "audit without an index of times",
    sql: "DROP INDEX audit_by_time",
  },
  {
    id: 12,
    name: "audit of calls",
    sql: AUDIT_OF_CALLS,
  },
  {
    id: 13,
    name: "content and subjects of delegations",
    sql: `
      -- The block as canonical JSON, without its signature: no token can be made from it. Empty for earlier rows.
      ALTER TABLE delegations ADD COLUMN block TEXT NOT NULL DEFAULT '';

      -- The identity for which the platform minted the root block; empty for none. Each row below repeats it.
      ALTER TABLE delegations ADD COLUMN subject_issuer TEXT NOT NULL DEFAULT '';
      ALTER TABLE delegations ADD COLUMN subject_id TEXT NOT NULL DEFAULT '';
      ALTER TABLE delegations ADD COLUMN subject_principal TEXT NOT NULL DEFAULT ''`,
  },
  {
    id: 14,
    name: "signing keys of projected tokens",
    sql: JWT_KEYS,
  },
  {
    id: 15,
    name: "audit of other services",
    sql: AUDIT_BATCHES,
  },
  {
    id: 16,
    name: "sealed days of the audit",
    sql: AUDIT_SEALS,
  },
  {
    id: 17,
    name: "holder sessions, order of the audit",
    sql: HOLDER_SESSIONS,
  },
  {
    id: 18,
    name: "audit of tool calls",
    sql: AUDIT_OF_TOOL_CALLS,
  },
  {
    id: 19,
    name: "purge of organizations",
    sql: `
      CREATE INDEX kept_keys_by_organization ON kept_keys (organization, id) WHERE organization <> '';
      CREATE INDEX reservations_by_organization ON reservations (organization, id) WHERE organization <> '';
      CREATE INDEX delegations_by_organization ON delegations (organization, position) WHERE organization <> '';
      CREATE INDEX delegations_by_parent ON delegations (parent_chain_id) WHERE parent_chain_id <> ''`,
  },
  {
    id: 20,
    name: "root keys",
    sql: ROOT_KEYS,
  },
  {
    id: 21,
    name: "proofs of audit records",
    sql: AUDIT_TREES,
  },
  {
    id: 22,
    name: "held reservations",
    sql: `CREATE INDEX reservations_held ON reservations (expire_ms, amount) WHERE state = 'held'`,
  },
];
