import type { Migration } from "@depute/store";

/**
 * The tables of conversations and of the log positions of their messages. A conversation is a task that began with an
 * A2A message.
 */
const CONVERSATIONS = `
CREATE TABLE conversations (
  task_id TEXT PRIMARY KEY,
  delegator TEXT NOT NULL,
  agent_id TEXT NOT NULL,
  correlation_id TEXT NOT NULL,
  status BIGINT NOT NULL,
  update_ms BIGINT NOT NULL
);
CREATE INDEX conversations_by_agent ON conversations (delegator, agent_id, update_ms, task_id);
CREATE INDEX conversations_by_context ON conversations (delegator, agent_id, correlation_id, update_ms, task_id);

CREATE TABLE conversation_messages (
  task_id TEXT NOT NULL,
  sequence BIGINT NOT NULL,
  PRIMARY KEY (task_id, sequence)
);
`;

/**
 * The table of the webhooks of conversations. If the column `has_webhooks` of a conversation is 0, a change of its
 * task needs no query of this table.
 */
const WEBHOOKS = `
ALTER TABLE conversations ADD COLUMN has_webhooks BIGINT NOT NULL DEFAULT 0;

CREATE TABLE conversation_webhooks (
  task_id TEXT NOT NULL,
  id TEXT NOT NULL,
  delegator TEXT NOT NULL,
  url TEXT NOT NULL,
  scheme TEXT NOT NULL,           -- of the header Authorization; empty for none
  sealed TEXT NOT NULL,           -- token and credentials, sealed by the key of webhooks
  sent_sequence BIGINT NOT NULL,  -- of the newest event that the receiver accepted
  known_sequence BIGINT NOT NULL, -- of the task's newest event
  attempts BIGINT NOT NULL,       -- failed ones of the present delivery
  next_ms BIGINT NOT NULL,
  PRIMARY KEY (task_id, id)
);
CREATE INDEX conversation_webhooks_due ON conversation_webhooks (next_ms, task_id, id)
  WHERE sent_sequence < known_sequence;
`;

/**
 * Adds the column that states whether the worker waits for an authorization. A list with this filter then reads no rows
 * of tasks. For a task that waited before this migration, the column stays 0 until the task changes.
 */
const AUTHORIZATIONS = `
ALTER TABLE conversations ADD COLUMN awaits_authorization BIGINT NOT NULL DEFAULT 0;
`;

/** The table of the log positions of a task's preliminary results. */
const PARTIALS = `
CREATE TABLE conversation_partials (
  task_id TEXT NOT NULL,
  sequence BIGINT NOT NULL,
  PRIMARY KEY (task_id, sequence)
);
`;

/** The tables of conversations. */
export const CONVERSATION_MIGRATIONS: readonly Migration[] = [
  { id: 1, name: "conversations", sql: CONVERSATIONS },
  { id: 2, name: "webhooks of conversations", sql: WEBHOOKS },
  { id: 3, name: "authorizations of conversations", sql: AUTHORIZATIONS },
  { id: 4, name: "preliminary results of conversations", sql: PARTIALS },
];
