import { AgentStatus } from "@depute/contracts/depute/registry/v1/agent_pb";
import { type Migration, purgedTableSql, requestTableSql } from "@depute/store";
import { AUTHORITIES } from "./authorities.ts";
import { IS_RUNNING, LEASE_STATE } from "./lease-state.ts";
import { PROPOSALS } from "./proposals.ts";

/** The table of the capabilities' search keys. */
const KEYS = `
      CREATE TABLE capability_keys (
        key TEXT NOT NULL,               -- a tag, protocol or organization of the agent, with a letter for its kind
        id TEXT NOT NULL,
        agent_id TEXT NOT NULL REFERENCES agents (id),
        PRIMARY KEY (key, id, agent_id)  -- in the order of the lists
      );
      CREATE INDEX capability_keys_by_agent ON capability_keys (agent_id);
      INSERT INTO capability_keys (key, id, agent_id)
        SELECT 'o' || a.organization, c.id, c.agent_id FROM capabilities c JOIN agents a ON a.id = c.agent_id
        WHERE a.organization <> '';
`;

/** The text search tables of Postgres. SQLite has FTS5 instead. */
const POSTGRES_TEXT = `
      CREATE TABLE capability_docs (
        agent_id TEXT NOT NULL,
        id TEXT NOT NULL,
        name TSVECTOR NOT NULL,
        category TSVECTOR NOT NULL,
        description TSVECTOR NOT NULL,
        whole TSVECTOR NOT NULL,         -- the three together
        keys TSVECTOR NOT NULL,
        PRIMARY KEY (agent_id, id)
      );
      CREATE INDEX capability_docs_by_word ON capability_docs
        USING gin (name, category, description, whole, keys)`;

/**
 * The registry's database schema. Times are epoch milliseconds. Both SQLite and Postgres accept the names of the column
 * types. A lease has a separate row, because heartbeats are the most frequent write: a heartbeat rewrites two numbers
 * instead of a manifest.
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

      CREATE TABLE bound_keys (
        principal TEXT NOT NULL,         -- a key that the agent has or had
        agent_id TEXT NOT NULL REFERENCES agents (id),
        PRIMARY KEY (principal, agent_id)
      );

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
${requestTableSql("requests")}`,
  },
  {
    id: 2,
    name: "versions, visibility, members and instances",
    sql: `
      ALTER TABLE agents ADD COLUMN visibility BIGINT NOT NULL DEFAULT 1;  -- AgentVisibility
      ALTER TABLE agents ADD COLUMN status_message TEXT NOT NULL DEFAULT '';
      ALTER TABLE agents ADD COLUMN revision BIGINT NOT NULL DEFAULT 0;    -- 0 from before versions were kept
      ALTER TABLE agents ADD COLUMN digest TEXT NOT NULL DEFAULT '';
      ALTER TABLE agents ADD COLUMN base_id TEXT;                          -- of an instance
      ALTER TABLE agents ADD COLUMN own BYTEA;  -- Agent, what an instance's owner registered; else as record
      CREATE INDEX agents_by_base ON agents (base_id, id) WHERE base_id IS NOT NULL;
      UPDATE agents SET base_id = substr(id, 1, instr(id, ':') - 1) WHERE instr(id, ':') > 0;

      CREATE TABLE agent_versions (
        agent_id TEXT NOT NULL REFERENCES agents (id),
        revision BIGINT NOT NULL,
        version TEXT NOT NULL,           -- the owner's word for it, or empty
        digest TEXT NOT NULL,
        create_time BIGINT NOT NULL,
        record BYTEA NOT NULL,           -- Agent, what its owner registered
        PRIMARY KEY (agent_id, revision)
      );
      CREATE UNIQUE INDEX agent_versions_by_version ON agent_versions (agent_id, version) WHERE version <> '';
      CREATE INDEX agent_versions_by_digest ON agent_versions (agent_id, digest, revision);

      CREATE TABLE viewers (
        agent_id TEXT NOT NULL REFERENCES agents (id),
        viewer TEXT NOT NULL,            -- an agent's id or a principal
        PRIMARY KEY (agent_id, viewer)
      );

      CREATE TABLE members (
        organization TEXT NOT NULL,
        principal TEXT NOT NULL,
        admitted_by TEXT NOT NULL,
        create_time BIGINT NOT NULL,
        PRIMARY KEY (organization, principal)
      );

      ALTER TABLE leases ADD COLUMN standing BIGINT NOT NULL DEFAULT 0;    -- see store/leases.ts
      UPDATE leases SET standing = ${LEASE_STATE.removed} WHERE agent_id IN (SELECT id FROM agents WHERE status = ${AgentStatus.REMOVED});
      DROP INDEX leases_by_expiry;
      CREATE INDEX leases_by_expiry ON leases (expire_time, standing);
`,
  },
  {
    id: 3,
    name: "search",
    sql: `${KEYS}
      -- SQLite's own, behind TextIndex; another database brings another one.
      CREATE TABLE capability_docs (
        doc INTEGER PRIMARY KEY,
        agent_id TEXT NOT NULL,
        id TEXT NOT NULL,
        UNIQUE (agent_id, id)
      );
      CREATE VIRTUAL TABLE capability_text USING fts5(
        name, category, description, keys, content='', contentless_delete=1, detail='column', prefix='2 3 4',
        tokenize="unicode61 remove_diacritics 0 categories 'L* N* M* Co'"
      );
      INSERT INTO capability_docs (agent_id, id) SELECT agent_id, id FROM capabilities;
      INSERT INTO capability_text (rowid, name, category, description, keys)
        SELECT doc, name, substr(rest, 1, instr(rest, char(10)) - 1), substr(rest, instr(rest, char(10)) + 1), keys
        FROM (SELECT d.doc AS doc, substr(c.words, 1, instr(c.words, char(10)) - 1) AS name,
            substr(c.words, instr(c.words, char(10)) + 1) AS rest,
            'x' || lower(hex('c' || c.category_key))
              || CASE a.organization WHEN '' THEN '' ELSE ' x' || lower(hex('o' || a.organization)) END AS keys
          FROM capability_docs d
          JOIN capabilities c ON c.agent_id = d.agent_id AND c.id = d.id
          JOIN agents a ON a.id = d.agent_id)`,
    postgres: `${KEYS}${POSTGRES_TEXT}`,
  },
  {
    id: 4,
    name: "the log of changes",
    sql: `
      CREATE TABLE changes (
        revision BIGINT PRIMARY KEY,     -- 1, 2, 3, ... without gaps
        agent_id TEXT NOT NULL,
        kind BIGINT NOT NULL,            -- AgentChangeKind
        time BIGINT NOT NULL,
        before TEXT                      -- JSON, who saw the agent before, where that changed
      );
      CREATE INDEX leases_standing ON leases (expire_time) WHERE ${IS_RUNNING};
      CREATE TABLE registry_state (
        name TEXT PRIMARY KEY,
        value BIGINT NOT NULL
      )`,
  },
  {
    id: 5,
    name: "offers",
    sql: `
      CREATE TABLE offers (
        offer_id TEXT NOT NULL,
        sequence BIGINT NOT NULL,        -- counts the offer's versions, from 1
        version TEXT NOT NULL,
        seller_id TEXT NOT NULL REFERENCES agents (id),
        organization TEXT NOT NULL,
        digest TEXT NOT NULL,
        is_current BIGINT NOT NULL,      -- 1 for one version of each offer
        is_restricted BIGINT NOT NULL,   -- 1 where buyers are named, be it none
        valid_from BIGINT NOT NULL,
        valid_until BIGINT NOT NULL,     -- the greatest exact number where there is no end
        publish_time BIGINT NOT NULL,
        withdraw_time BIGINT NOT NULL,   -- 0 before
        withdraw_message TEXT NOT NULL,
        record BYTEA NOT NULL,           -- agenta.delegation.v0.Offer
        PRIMARY KEY (offer_id, sequence),
        UNIQUE (offer_id, version)
      );
      CREATE INDEX offers_current ON offers (offer_id) WHERE is_current = 1;
      CREATE INDEX offers_by_seller ON offers (seller_id, offer_id) WHERE is_current = 1;
      CREATE INDEX offers_by_organization ON offers (organization, offer_id) WHERE is_current = 1;

      CREATE TABLE offer_buyers (
        offer_id TEXT NOT NULL,
        sequence BIGINT NOT NULL,
        buyer_id TEXT NOT NULL,
        PRIMARY KEY (offer_id, sequence, buyer_id)
      );
      CREATE TABLE offer_words (
        word TEXT NOT NULL,
        offer_id TEXT NOT NULL,
        sequence BIGINT NOT NULL,
        PRIMARY KEY (word, offer_id, sequence)
      )`,
  },
  {
    id: 6,
    name: "trust",
    sql: `
      CREATE TABLE trust (
        subject TEXT NOT NULL,           -- an agent's id, never an instance's
        counterpart TEXT NOT NULL,       -- another's, or empty for everybody's evidence
        lasting DOUBLE PRECISION NOT NULL, -- the part of the score that idling leaves
        fading DOUBLE PRECISION NOT NULL,  -- the rest, as of time
        time BIGINT NOT NULL,
        state TEXT NOT NULL,             -- JSON, see store/trust.ts
        PRIMARY KEY (subject, counterpart)
      );
      CREATE TABLE trust_sources (
        subject TEXT NOT NULL,
        source TEXT NOT NULL,            -- an agent, a key or a proven organization, with a letter for its kind
        time BIGINT NOT NULL,
        gains TEXT NOT NULL,             -- JSON, the gains of each component as of time
        PRIMARY KEY (subject, source)
      );
      CREATE TABLE trust_evidence (
        sequence BIGINT PRIMARY KEY,
        caller TEXT NOT NULL,
        evidence_id TEXT NOT NULL,
        digest TEXT NOT NULL,
        subject TEXT NOT NULL,
        counterpart TEXT NOT NULL,
        kind TEXT NOT NULL,
        reference TEXT NOT NULL,         -- of an outcome or a rating, or empty
        substantial BIGINT NOT NULL,     -- 1 for work with a stake or a verified result
        record BYTEA NOT NULL,           -- TrustEntry
        UNIQUE (caller, evidence_id)
      );
      CREATE INDEX trust_evidence_by_subject ON trust_evidence (subject, sequence);
      CREATE INDEX trust_evidence_by_pair ON trust_evidence (subject, counterpart, kind, reference)`,
  },
  {
    id: 7,
    name: "categories among the keys",
    sql: `
      INSERT INTO capability_keys (key, id, agent_id)
        SELECT 'c' || category_key, id, agent_id FROM capabilities`,
  },
  {
    id: 8,
    name: "versions that differ in their key alone",
    sql: `
      DROP INDEX agent_versions_by_version;
      CREATE INDEX agent_versions_by_version ON agent_versions (agent_id, version, revision)
        WHERE version <> ''`,
  },
  {
    id: 9,
    name: "proven organizations",
    sql: `
      CREATE TABLE organization_proofs (
        id TEXT PRIMARY KEY,             -- a UUIDv7, so that ids ascend with time
        organization TEXT NOT NULL,
        principal TEXT NOT NULL,
        proven_by TEXT NOT NULL,         -- the operator's principal
        create_time BIGINT NOT NULL,
        revoke_time BIGINT NOT NULL,     -- 0 while it is in force
        revoked_by TEXT NOT NULL
      );
      CREATE UNIQUE INDEX organization_proofs_in_force ON organization_proofs (organization, principal)
        WHERE revoke_time = 0;
      CREATE INDEX organization_proofs_by_organization ON organization_proofs (organization, id);
      CREATE INDEX organization_proofs_by_principal ON organization_proofs (principal, id)`,
  },
  { id: 10, name: "authorities of agent URIs", sql: AUTHORITIES },
  {
    id: 11,
    name: "keys of agents",
    sql: `
      CREATE TABLE agent_keys (
        key TEXT NOT NULL,               -- a tag, protocol or organization, with a letter for its kind
        agent_id TEXT NOT NULL REFERENCES agents (id),
        PRIMARY KEY (key, agent_id)      -- in the order of the lists
      );
      DROP INDEX capabilities_by_category`,
  },
  { id: 12, name: "proposals", sql: PROPOSALS },
  {
    id: 13,
    name: "purge of organizations",
    sql: `${purgedTableSql()};
      CREATE INDEX offers_by_owner ON offers (organization, offer_id, sequence) WHERE organization <> '';
      CREATE INDEX offers_of_seller ON offers (seller_id, offer_id, sequence);
      CREATE INDEX trust_by_counterpart ON trust (counterpart, subject);
      CREATE INDEX trust_sources_by_source ON trust_sources (source, subject);
      CREATE INDEX trust_evidence_by_counterpart ON trust_evidence (counterpart, sequence);
      CREATE INDEX authority_grants_by_organization ON authority_grants (organization, authority, principal)
        WHERE organization <> '';
      CREATE INDEX authority_grants_by_principal ON authority_grants (principal, authority);
      CREATE INDEX members_by_principal ON members (principal);
      CREATE INDEX proposals_by_organization ON proposals (organization, owed, id) WHERE organization <> '';
      CREATE INDEX changes_by_agent ON changes (agent_id, revision)`,
  },
];
