import type { Migration } from "@depute/store";

// The row of a refused message has an error code and no content. `cap_refusals` counts each sender's refusals in a
// lineage, which bounds the sender's rows. `cap_tasks.is_open` is 1 until the task engine's task has ended.
const MESSAGES = `
CREATE TABLE cap_tasks (
  cap_task_id TEXT PRIMARY KEY,
  root_id TEXT NOT NULL,
  task_id TEXT NOT NULL,
  delegator_id TEXT NOT NULL,
  agent_id TEXT NOT NULL,
  reviews_id TEXT NOT NULL,
  notice_id TEXT NOT NULL,
  create_ms BIGINT NOT NULL,
  is_open BIGINT NOT NULL
);
CREATE UNIQUE INDEX cap_tasks_by_task ON cap_tasks (task_id);
CREATE INDEX cap_tasks_by_root ON cap_tasks (root_id, create_ms, cap_task_id);
CREATE INDEX cap_tasks_by_review ON cap_tasks (reviews_id) WHERE reviews_id <> '';
CREATE INDEX cap_tasks_open ON cap_tasks (root_id) WHERE is_open = 1;

CREATE TABLE cap_held (
  task_id TEXT PRIMARY KEY,
  cap_task_id TEXT NOT NULL,
  holder TEXT NOT NULL,
  overseer TEXT NOT NULL
);
CREATE INDEX cap_held_by_holder ON cap_held (holder, task_id);
CREATE INDEX cap_held_by_overseer ON cap_held (overseer, task_id);

CREATE TABLE cap_lineages (
  root_id TEXT PRIMARY KEY,
  organization TEXT NOT NULL,
  messages BIGINT NOT NULL,
  outside BIGINT NOT NULL,
  refusals BIGINT NOT NULL,
  update_ms BIGINT NOT NULL
);
CREATE INDEX cap_lineages_by_age ON cap_lineages (update_ms);

CREATE TABLE cap_messages (
  message_id TEXT PRIMARY KEY,
  root_id TEXT NOT NULL,
  organization TEXT NOT NULL,
  number BIGINT NOT NULL,
  cap_task_id TEXT NOT NULL,
  type TEXT NOT NULL,
  sender_id TEXT NOT NULL,
  recipient_id TEXT NOT NULL,
  receive_ms BIGINT NOT NULL,
  origin BIGINT NOT NULL,
  effect BIGINT NOT NULL,
  error_code BIGINT NOT NULL,
  reason TEXT NOT NULL,
  carries TEXT NOT NULL,
  claimed TEXT,
  message BLOB
);
CREATE UNIQUE INDEX cap_messages_by_number ON cap_messages (root_id, number);
CREATE INDEX cap_messages_by_task ON cap_messages (cap_task_id, number);

CREATE TABLE cap_parties (
  root_id TEXT NOT NULL,
  agent_id TEXT NOT NULL,
  PRIMARY KEY (root_id, agent_id)
);

CREATE TABLE cap_mailboxes (
  agent_id TEXT PRIMARY KEY,
  last_sequence BIGINT NOT NULL,
  first_sequence BIGINT NOT NULL,
  waiting BIGINT NOT NULL
);

CREATE TABLE cap_inbox (
  agent_id TEXT NOT NULL,
  sequence BIGINT NOT NULL,
  message_id TEXT NOT NULL,
  acknowledged BIGINT NOT NULL,
  PRIMARY KEY (agent_id, sequence)
);
CREATE INDEX cap_inbox_waiting ON cap_inbox (agent_id, sequence) WHERE acknowledged = 0;
CREATE INDEX cap_inbox_by_message ON cap_inbox (message_id);

CREATE TABLE cap_tool_results (
  root_id TEXT NOT NULL,
  digest TEXT NOT NULL,
  PRIMARY KEY (root_id, digest)
);

CREATE TABLE cap_requests (
  sender TEXT NOT NULL,
  request_id TEXT NOT NULL,
  digest TEXT NOT NULL,
  message_id TEXT NOT NULL,
  PRIMARY KEY (sender, request_id)
);
CREATE INDEX cap_requests_by_message ON cap_requests (message_id);

CREATE TABLE cap_refusals (
  root_id TEXT NOT NULL,
  sender_id TEXT NOT NULL,
  refusals BIGINT NOT NULL,
  PRIMARY KEY (root_id, sender_id)
);
`;

// The index by which the erasure of an organization finds its lineages.
const BY_ORGANIZATION = `
CREATE INDEX cap_lineages_by_organization ON cap_lineages (organization, root_id) WHERE organization <> '';
`;

/** The tables of CAP messages. They are in the tasks store, so that a message and its effect commit together. */
export const MESSAGE_MIGRATIONS: readonly Migration[] = [
  { id: 1, name: "messages", sql: MESSAGES },
  { id: 2, name: "lineages by organization", sql: BY_ORGANIZATION },
];
