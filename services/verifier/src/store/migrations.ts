import { type Migration, purgedTableSql, requestTableSql } from "@depute/store";

export const migrations: readonly Migration[] = [
  {
    id: 1,
    name: "contracts, attestations, request ids",
    sql: `
      CREATE TABLE contracts (
        id TEXT PRIMARY KEY,
        issuer TEXT NOT NULL,
        organization TEXT NOT NULL,      -- owns the contract; empty for none
        digest TEXT NOT NULL,
        document TEXT NOT NULL,
        create_time INTEGER NOT NULL
      );
      CREATE INDEX contracts_by_time ON contracts (create_time, id);
      CREATE INDEX contracts_by_issuer ON contracts (issuer, create_time, id);

      CREATE TABLE attestations (
        id TEXT PRIMARY KEY,
        contract_id TEXT NOT NULL REFERENCES contracts (id),
        principal TEXT NOT NULL,
        organization TEXT NOT NULL,      -- owns the attestation; empty for none
        digest TEXT NOT NULL,
        document TEXT NOT NULL,
        record_time INTEGER NOT NULL
      );
      CREATE INDEX attestations_by_contract ON attestations (contract_id, record_time, id);

${requestTableSql("requests")};
    `,
  },
  {
    id: 2,
    name: "transparency log",
    sql: `
      ALTER TABLE attestations ADD COLUMN log_index BIGINT;   -- null until the log contains the attestation
      CREATE INDEX attestations_unlogged ON attestations (record_time, id) WHERE log_index IS NULL;

      -- One row. The frontier holds the hashes of the complete subtrees, left to right, 32 bytes each.
      CREATE TABLE log_state (
        id BIGINT PRIMARY KEY,
        size BIGINT NOT NULL,
        frontier BYTEA NOT NULL
      );

      CREATE TABLE log_entries (
        log_index BIGINT PRIMARY KEY,
        kind TEXT NOT NULL,
        digest BYTEA NOT NULL,
        append_ms BIGINT NOT NULL,
        UNIQUE (digest, kind)
      );

      -- Nodes of complete subtrees; they never change. The position is level * 2^40 + index.
      CREATE TABLE log_nodes (
        position BIGINT PRIMARY KEY,
        hash BYTEA NOT NULL
      );

      -- The next position to read in each log of another service.
      CREATE TABLE cursors (
        name TEXT PRIMARY KEY,
        position BIGINT NOT NULL
      );
    `,
  },
  {
    id: 3,
    name: "sub-contracts, revocations",
    sql: `
      CREATE TABLE sub_contracts (
        contract_id TEXT PRIMARY KEY REFERENCES contracts (id),
        parent_id TEXT NOT NULL REFERENCES contracts (id),
        plan_id TEXT NOT NULL,
        mode TEXT NOT NULL,
        depends_on TEXT NOT NULL,       -- JSON
        budget BIGINT NOT NULL,
        place BIGINT NOT NULL,          -- position among the parent's sub-contracts, from 1
        UNIQUE (parent_id, place)
      );

      -- Copies of the tokens service's revocations, with the time of their record there.
      CREATE TABLE revocations (
        revocation_id TEXT NOT NULL,
        revoked_by TEXT NOT NULL,
        record_ms BIGINT NOT NULL,
        PRIMARY KEY (revocation_id, revoked_by)
      );
      -- The follower reads the revocations from the start: the log contains each only once.
      DELETE FROM cursors;
    `,
  },
  {
    id: 4,
    name: "reviews, results of judges",
    sql: `
      CREATE TABLE reviews (
        id TEXT PRIMARY KEY,
        kind TEXT NOT NULL,
        creator TEXT NOT NULL,
        organization TEXT NOT NULL,      -- owns the review; empty for none
        request_id TEXT NOT NULL,
        digest TEXT NOT NULL,            -- of the request's content
        subject TEXT NOT NULL,
        title TEXT NOT NULL,
        content TEXT,                    -- JSON
        author TEXT NOT NULL,
        reviewers TEXT NOT NULL,         -- JSON
        escalation_reviewers TEXT NOT NULL,
        escalation_ms BIGINT NOT NULL,
        deadline_ms BIGINT NOT NULL,
        create_ms BIGINT NOT NULL,
        decision TEXT,                   -- null until a reviewer decides
        decided_by TEXT,
        reason TEXT,
        decide_ms BIGINT,
        due_ms BIGINT,                   -- the next escalation or deadline; null once closed
        UNIQUE (creator, request_id)
      );
      CREATE INDEX reviews_by_time ON reviews (create_ms, id);
      CREATE INDEX reviews_due ON reviews (due_ms, id) WHERE due_ms IS NOT NULL;

      CREATE TABLE review_readers (
        principal TEXT NOT NULL,
        review_id TEXT NOT NULL REFERENCES reviews (id),
        create_ms BIGINT NOT NULL,
        PRIMARY KEY (principal, create_ms, review_id)
      );

      CREATE TABLE review_changes (
        sequence BIGINT PRIMARY KEY,     -- from 1, without gaps
        review_id TEXT NOT NULL REFERENCES reviews (id)
      );

      -- Results of model judges: the same output is judged and charged only once.
      CREATE TABLE judgements (
        contract_id TEXT NOT NULL,
        output_hash TEXT NOT NULL,
        step TEXT NOT NULL,
        result TEXT NOT NULL,            -- JSON of a check's result
        cost BIGINT NOT NULL,
        create_ms BIGINT NOT NULL,
        PRIMARY KEY (contract_id, output_hash, step)
      );

      -- The cost of each model call, including calls without a result.
      CREATE TABLE judge_charges (
        place BIGINT PRIMARY KEY,
        contract_id TEXT NOT NULL,
        issuer TEXT NOT NULL,
        cost BIGINT NOT NULL,
        create_ms BIGINT NOT NULL
      );
      CREATE INDEX judge_charges_by_contract ON judge_charges (contract_id);
    `,
  },
  {
    id: 5,
    name: "verification results, artifacts",
    sql: `
      CREATE TABLE verification_results (
        verification_id TEXT PRIMARY KEY,
        receipt_id TEXT NOT NULL,
        organization TEXT NOT NULL,      -- owns the result; empty for none
        final BIGINT NOT NULL,           -- 1: pass or fail
        digest TEXT NOT NULL,            -- of the request
        document TEXT NOT NULL,
        log_index BIGINT NOT NULL,
        record_ms BIGINT NOT NULL
      );
      CREATE INDEX results_by_receipt ON verification_results (receipt_id, log_index);
      CREATE UNIQUE INDEX final_results ON verification_results (receipt_id) WHERE final = 1;

      CREATE TABLE artifacts (
        digest TEXT PRIMARY KEY,         -- sha256: then hexadecimal digits
        content BYTEA NOT NULL,
        media_type TEXT NOT NULL,
        owner TEXT NOT NULL,
        organization TEXT NOT NULL,      -- owns the artifact; empty for none
        create_ms BIGINT NOT NULL
      );
      CREATE TABLE artifact_owners (
        owner TEXT PRIMARY KEY,
        count BIGINT NOT NULL,
        bytes BIGINT NOT NULL
      );
    `,
  },
  {
    id: 6,
    name: "outcomes for the registry",
    sql: `
      CREATE TABLE trust_outbox (
        place BIGINT PRIMARY KEY,
        attestation_id TEXT NOT NULL REFERENCES attestations (id)
      );
    `,
  },
  {
    id: 7,
    name: "reviews: references to content, inquiries",
    sql: `
      ALTER TABLE reviews ADD COLUMN content_reference TEXT; -- JSON
      CREATE TABLE review_inquiries (
        review_id TEXT NOT NULL REFERENCES reviews (id),
        number BIGINT NOT NULL,          -- position among the review's inquiries, from 1
        request_id TEXT NOT NULL,
        inquirer TEXT NOT NULL,
        text TEXT NOT NULL,
        create_ms BIGINT NOT NULL,
        answer TEXT,
        answered_by TEXT,
        answer_ms BIGINT,
        PRIMARY KEY (review_id, number),
        UNIQUE (review_id, inquirer, request_id)
      );
    `,
  },
  {
    id: 8,
    name: "verification results for the registry",
    sql: `
      CREATE TABLE trust_results_outbox (
        place BIGINT PRIMARY KEY,
        verification_id TEXT NOT NULL REFERENCES verification_results (verification_id),
        agent_id TEXT NOT NULL,          -- the agent that did the work
        counterpart_agent_id TEXT NOT NULL,
        verifier_agent_id TEXT NOT NULL, -- a third party; empty for none
        success BIGINT NOT NULL,         -- 1: the work passed
        quality DOUBLE PRECISION NOT NULL
      );
    `,
  },
  {
    id: 9,
    name: "pending completions",
    sql: `
      CREATE TABLE pending_completions (
        attestation_id TEXT PRIMARY KEY,
        digest TEXT NOT NULL,
        document TEXT NOT NULL,
        revocation_id TEXT NOT NULL,     -- of the delegation's block
        output TEXT,                     -- JSON; present if the attestation holds only its hash
        verification TEXT,               -- JSON of the contract's check result; null for a failure
        record_time BIGINT NOT NULL
      );
      CREATE INDEX pending_completions_by_time ON pending_completions (record_time, attestation_id);
    `,
  },
  {
    id: 10,
    name: "claims of judgements",
    sql: `
      -- Judgements that a replica makes now.
      CREATE TABLE judge_claims (
        contract_id TEXT NOT NULL,
        output_hash TEXT NOT NULL,
        step TEXT NOT NULL,
        holder TEXT NOT NULL,            -- identifies the claim
        expire_ms BIGINT NOT NULL,
        PRIMARY KEY (contract_id, output_hash, step)
      );
    `,
  },
  {
    id: 11,
    name: "roles of reviewers",
    // A JSON array of the roles whose principals may decide the review.
    sql: "ALTER TABLE reviews ADD COLUMN reviewer_roles TEXT NOT NULL DEFAULT '[]'",
  },
  {
    id: 12,
    name: "purge of organizations",
    sql: `${purgedTableSql()};

      -- One row. Deleted changes of reviews had numbers up to this one.
      CREATE TABLE review_change_floor (
        id BIGINT PRIMARY KEY,
        sequence BIGINT NOT NULL
      );
      CREATE INDEX review_changes_by_review ON review_changes (review_id);
      CREATE INDEX review_readers_by_review ON review_readers (review_id);
      CREATE INDEX reviews_by_organization ON reviews (organization, id) WHERE organization <> '';
      CREATE INDEX contracts_by_organization ON contracts (organization, id) WHERE organization <> '';
      CREATE INDEX attestations_by_organization ON attestations (organization, id) WHERE organization <> '';
      CREATE INDEX results_by_organization ON verification_results (organization, verification_id)
        WHERE organization <> '';
      CREATE INDEX artifacts_by_organization ON artifacts (organization, digest) WHERE organization <> '';
      CREATE INDEX trust_outbox_by_attestation ON trust_outbox (attestation_id);
      CREATE INDEX trust_results_outbox_by_result ON trust_results_outbox (verification_id);
    `,
  },
  {
    id: 13,
    name: "heads of other platforms' logs",
    sql: `
      -- The newest heads of each platform that publishes here, as JSON of their messages.
      CREATE TABLE witnessed_platforms (
        platform TEXT PRIMARY KEY,       -- the principal that publishes
        log_head TEXT,                   -- null until the first publication
        log_head_ms BIGINT,              -- the time of its receipt
        checkpoint TEXT,
        checkpoint_ms BIGINT,
        create_ms BIGINT NOT NULL
      );
    `,
  },
  {
    id: 14,
    name: "reviews by subject",
    sql: `
      CREATE INDEX reviews_by_subject ON reviews (subject, create_ms, id);
    `,
  },
];
