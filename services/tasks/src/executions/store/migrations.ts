import type { Migration } from "@depute/store";
import { IS_OPEN, IS_REJECTED, IS_TAKEN } from "./conditions.ts";

const EXECUTIONS = `
CREATE TABLE executions (
  request_id TEXT PRIMARY KEY,
  buyer_id TEXT NOT NULL,
  idempotency_key TEXT NOT NULL,
  digest TEXT NOT NULL,
  buyer_principal TEXT NOT NULL,
  organization TEXT NOT NULL,
  seller_id TEXT NOT NULL,
  seller_principal TEXT NOT NULL,
  seller_organization TEXT NOT NULL,
  task_id TEXT,
  offer_id TEXT NOT NULL,
  offer_version TEXT NOT NULL,
  parent_request_id TEXT NOT NULL,
  status BIGINT NOT NULL,
  approval BIGINT NOT NULL,
  settlement BIGINT NOT NULL,
  limit_amount BIGINT NOT NULL,
  final_amount BIGINT,
  capture_id TEXT NOT NULL,
  start_by_ms BIGINT NOT NULL,
  deadline_ms BIGINT NOT NULL,
  verify_by_ms BIGINT,
  create_ms BIGINT NOT NULL,
  end_ms BIGINT,
  last_number BIGINT NOT NULL,
  request BLOB NOT NULL
);
CREATE UNIQUE INDEX executions_by_key ON executions (buyer_id, idempotency_key);
CREATE UNIQUE INDEX executions_by_task ON executions (task_id) WHERE task_id IS NOT NULL;
CREATE INDEX executions_open ON executions (offer_id) WHERE ${IS_OPEN};
CREATE INDEX executions_taken ON executions (offer_id, create_ms) WHERE ${IS_TAKEN};
CREATE INDEX executions_to_verify ON executions (verify_by_ms, request_id) WHERE verify_by_ms IS NOT NULL;
CREATE INDEX executions_by_buyer ON executions (buyer_id, create_ms, request_id);
CREATE INDEX executions_by_seller ON executions (seller_id, create_ms, request_id);
CREATE INDEX executions_by_parent ON executions (parent_request_id) WHERE parent_request_id <> '';
CREATE INDEX executions_rejected ON executions (end_ms, request_id) WHERE ${IS_REJECTED};
CREATE INDEX executions_rejected_by_buyer ON executions (buyer_id) WHERE ${IS_REJECTED};
CREATE INDEX executions_by_end ON executions (end_ms, request_id) WHERE end_ms IS NOT NULL;

CREATE TABLE execution_offers (
  offer_id TEXT NOT NULL,
  offer_version TEXT NOT NULL,
  offer BLOB NOT NULL,
  PRIMARY KEY (offer_id, offer_version)
);

CREATE TABLE execution_receipts (
  request_id TEXT NOT NULL,
  number BIGINT NOT NULL,
  receipt_id TEXT NOT NULL,
  settles BIGINT NOT NULL,
  receipt BLOB NOT NULL,
  PRIMARY KEY (request_id, number)
);
CREATE UNIQUE INDEX execution_receipts_by_id ON execution_receipts (receipt_id);

CREATE TABLE execution_settlements (
  request_id TEXT NOT NULL,
  number BIGINT NOT NULL,
  state BIGINT NOT NULL,
  amount BIGINT NOT NULL,
  reason TEXT NOT NULL,
  time_ms BIGINT NOT NULL,
  PRIMARY KEY (request_id, number)
);

CREATE TABLE execution_verifications (
  verification_id TEXT PRIMARY KEY,
  request_id TEXT NOT NULL,
  result BLOB NOT NULL,
  retry_ms BIGINT NOT NULL
);
CREATE INDEX execution_verifications_by_request ON execution_verifications (request_id);
CREATE INDEX execution_verifications_by_retry ON execution_verifications (retry_ms, verification_id);

CREATE TABLE execution_reviews (
  request_id TEXT PRIMARY KEY,
  review_id TEXT NOT NULL,
  to_tell BIGINT NOT NULL
);
CREATE UNIQUE INDEX execution_reviews_by_id ON execution_reviews (review_id) WHERE review_id <> '';
CREATE INDEX execution_reviews_to_tell ON execution_reviews (request_id) WHERE to_tell = 1;

CREATE TABLE execution_callbacks (
  request_id TEXT NOT NULL,
  number BIGINT NOT NULL,
  attempts BIGINT NOT NULL,
  next_ms BIGINT NOT NULL,
  PRIMARY KEY (request_id, number)
);
CREATE INDEX execution_callbacks_by_next ON execution_callbacks (next_ms, request_id, number);
`;

// The index by which the erasure of an organization finds its executions.
const BY_ORGANIZATION = `
CREATE INDEX executions_by_organization ON executions (organization, request_id) WHERE organization <> '';
`;

// The revocation ids of the blocks of the buyer's token, comma separated. Empty without a token; null in rows from
// before this column.
const AUTHORITY = `
ALTER TABLE executions ADD COLUMN authority TEXT;
`;

/**
 * The tables of executions. They are in the tasks store, so that one transaction writes a task's event and its receipt.
 */
export const EXECUTION_MIGRATIONS: readonly Migration[] = [
  { id: 1, name: "executions", sql: EXECUTIONS },
  { id: 2, name: "executions by organization", sql: BY_ORGANIZATION },
  { id: 3, name: "authority of executions", sql: AUTHORITY },
];
