import type { Migration } from "@depute/store";
import { IS_PENDING } from "./conditions.ts";

// Partial indexes contain only open tasks. The indexes for the queue, for deadlines and for lease holders therefore
// stay small.
const TASKS = `
CREATE TABLE tasks (
  task_id TEXT PRIMARY KEY,
  delegator TEXT NOT NULL,
  organization TEXT NOT NULL,
  external_id TEXT NOT NULL,
  draft_digest TEXT NOT NULL,
  correlation_id TEXT NOT NULL,
  agent_id TEXT NOT NULL,
  agent_principal TEXT NOT NULL,
  capability_id TEXT NOT NULL,
  output_schema TEXT NOT NULL,
  create_ms BIGINT NOT NULL,
  status BIGINT NOT NULL,
  last_sequence BIGINT NOT NULL,
  queued_ms BIGINT NOT NULL,
  epoch BIGINT NOT NULL,
  holder TEXT,
  lease_expire_ms BIGINT,
  attempt_deadline_ms BIGINT,
  settled_by TEXT,
  settled_epoch BIGINT,
  next_deadline_ms BIGINT,
  context_expire_ms BIGINT,
  parent_id TEXT NOT NULL,
  root_id TEXT NOT NULL,
  urgency BIGINT NOT NULL,
  overseer_id TEXT NOT NULL,
  overseer_principal TEXT NOT NULL,
  end_ms BIGINT,
  purged BIGINT NOT NULL DEFAULT 0,
  task BLOB NOT NULL
);
CREATE UNIQUE INDEX tasks_by_external_id ON tasks (delegator, external_id, agent_id) WHERE external_id <> '';
CREATE INDEX tasks_by_delegator ON tasks (delegator, create_ms, task_id);
CREATE INDEX tasks_by_correlation ON tasks (delegator, correlation_id, create_ms, task_id);
CREATE INDEX tasks_by_agent ON tasks (delegator, agent_id, create_ms, task_id);
CREATE INDEX tasks_queue ON tasks (agent_id, urgency, create_ms, task_id) WHERE ${IS_PENDING};
CREATE INDEX tasks_queue_by_capability ON tasks (agent_id, capability_id, urgency, create_ms, task_id)
  WHERE ${IS_PENDING};
CREATE INDEX tasks_by_deadline ON tasks (next_deadline_ms, task_id) WHERE next_deadline_ms IS NOT NULL;
CREATE INDEX tasks_by_holder ON tasks (holder) WHERE holder IS NOT NULL;
CREATE INDEX tasks_held_by_agent ON tasks (agent_id) WHERE holder IS NOT NULL;
CREATE INDEX tasks_by_parent ON tasks (parent_id, create_ms, task_id) WHERE parent_id <> '';
CREATE INDEX tasks_by_root ON tasks (root_id, create_ms, task_id) WHERE parent_id <> '';
CREATE INDEX tasks_open_by_parent ON tasks (parent_id) WHERE parent_id <> '' AND next_deadline_ms IS NOT NULL;
CREATE INDEX tasks_open_by_root ON tasks (root_id, next_deadline_ms)
  WHERE parent_id <> '' AND next_deadline_ms IS NOT NULL;
CREATE INDEX tasks_to_purge ON tasks (end_ms, task_id) WHERE end_ms IS NOT NULL AND purged = 0;
CREATE INDEX tasks_to_forget ON tasks (end_ms, task_id) WHERE end_ms IS NOT NULL AND purged = 1;
CREATE INDEX tasks_by_output_schema ON tasks (output_schema) WHERE output_schema <> '' AND purged = 0;

CREATE TABLE task_inputs (
  task_id TEXT PRIMARY KEY,
  input BLOB,
  worker_token TEXT NOT NULL
);

CREATE TABLE task_events (
  task_id TEXT NOT NULL,
  sequence BIGINT NOT NULL,
  event BLOB NOT NULL,
  PRIMARY KEY (task_id, sequence)
);

CREATE TABLE task_requests (
  delegator TEXT NOT NULL,
  request_id TEXT NOT NULL,
  draft_digest TEXT NOT NULL,
  task_id TEXT NOT NULL,
  PRIMARY KEY (delegator, request_id)
);
CREATE INDEX task_requests_by_task ON task_requests (task_id);

CREATE TABLE task_reports (
  task_id TEXT NOT NULL,
  epoch BIGINT NOT NULL,
  request_id TEXT NOT NULL,
  digest TEXT NOT NULL,
  sequence BIGINT NOT NULL,
  PRIMARY KEY (task_id, epoch, request_id)
);

CREATE TABLE task_blocks (
  revocation_id TEXT NOT NULL,
  task_id TEXT NOT NULL,
  PRIMARY KEY (revocation_id, task_id)
);
CREATE INDEX task_blocks_by_task ON task_blocks (task_id);

CREATE TABLE output_schemas (
  digest TEXT PRIMARY KEY,
  schema BLOB NOT NULL
);

CREATE TABLE cursors (
  name TEXT PRIMARY KEY,
  sequence BIGINT NOT NULL
);
`;

// Tables for the work state between attempts (such as checkpoints), held results, budgets of tasks, and limits of
// agents.
const WORK = `
CREATE TABLE task_checkpoints (
  task_id TEXT PRIMARY KEY,
  digest TEXT NOT NULL,
  checkpoint BLOB NOT NULL
);

CREATE TABLE task_provided_inputs (
  task_id TEXT NOT NULL,
  number BIGINT NOT NULL,
  input BLOB NOT NULL,
  PRIMARY KEY (task_id, number)
);

CREATE TABLE task_commands (
  caller TEXT NOT NULL,
  request_id TEXT NOT NULL,
  digest TEXT NOT NULL,
  task_id TEXT NOT NULL,
  PRIMARY KEY (caller, request_id)
);
CREATE INDEX task_commands_by_task ON task_commands (task_id);

CREATE TABLE task_results (
  task_id TEXT PRIMARY KEY,
  result BLOB NOT NULL
);

CREATE TABLE task_spend (
  task_id TEXT PRIMARY KEY,
  max_tokens BIGINT,
  max_cost BIGINT,
  reserved_tokens BIGINT NOT NULL,
  reserved_cost BIGINT NOT NULL,
  spent_tokens BIGINT NOT NULL,
  spent_cost BIGINT NOT NULL,
  attempt_tokens BIGINT NOT NULL,
  attempt_cost BIGINT NOT NULL
);

CREATE TABLE delegate_limits (
  agent_id TEXT PRIMARY KEY,
  max_held BIGINT NOT NULL,
  draining BIGINT NOT NULL
);
`;

// `data_in` names the location of a context's data: the column `envelope` (`store`), memory (`memory`), or none after
// deletion (`nowhere`). A context that must not be stored has a row without its data and its digest.
const CONTEXTS = `
CREATE TABLE contexts (
  context_id TEXT PRIMARY KEY,
  owner TEXT NOT NULL,
  organization TEXT NOT NULL,
  external_id TEXT NOT NULL,
  request_id TEXT NOT NULL,
  digest TEXT NOT NULL,
  envelope BLOB NOT NULL,
  create_ms BIGINT NOT NULL,
  expire_ms BIGINT NOT NULL,
  revoked BIGINT NOT NULL,
  data_in TEXT NOT NULL
);
CREATE UNIQUE INDEX contexts_by_external_id ON contexts (owner, external_id) WHERE external_id <> '';
CREATE UNIQUE INDEX contexts_by_request ON contexts (owner, request_id);
CREATE INDEX contexts_by_expiry ON contexts (expire_ms, context_id);
CREATE INDEX contexts_with_data ON contexts (data_in, expire_ms, context_id) WHERE data_in <> 'nowhere';

CREATE TABLE context_readers (
  context_id TEXT NOT NULL,
  agent_id TEXT NOT NULL,
  principal TEXT NOT NULL,
  PRIMARY KEY (context_id, agent_id)
);

CREATE TABLE task_contexts (
  task_id TEXT NOT NULL,
  number BIGINT NOT NULL,
  context_id TEXT NOT NULL,
  PRIMARY KEY (task_id, number)
);
CREATE INDEX task_contexts_by_context ON task_contexts (context_id, task_id);

CREATE TABLE context_sources (
  context_id TEXT NOT NULL,
  source_id TEXT NOT NULL,
  PRIMARY KEY (context_id, source_id)
);
CREATE INDEX context_sources_by_source ON context_sources (source_id, context_id);
`;

const ARTIFACTS = `
CREATE TABLE task_artifacts (
  artifact_id TEXT PRIMARY KEY,
  task_id TEXT NOT NULL,
  name TEXT NOT NULL,
  media_type TEXT NOT NULL,
  size BIGINT NOT NULL,
  sha256 TEXT NOT NULL,
  written BIGINT NOT NULL,
  whole BIGINT NOT NULL,
  maker TEXT NOT NULL,
  organization TEXT NOT NULL,
  is_result BIGINT NOT NULL,
  create_ms BIGINT NOT NULL
);
CREATE INDEX task_artifacts_by_task ON task_artifacts (task_id, artifact_id);

CREATE TABLE task_artifact_bytes (
  artifact_id TEXT NOT NULL,
  start BIGINT NOT NULL,
  task_id TEXT NOT NULL,
  data BLOB NOT NULL,
  PRIMARY KEY (artifact_id, start)
);
CREATE INDEX task_artifact_bytes_by_task ON task_artifact_bytes (task_id);
`;

// A row with a `place` records the end of a delegation that the tokens service has not received. `place` gives the
// order of the reports. The purge of a task's content keeps this row, so no report is lost.
const DELEGATIONS = `
CREATE TABLE task_delegations (
  task_id TEXT PRIMARY KEY,
  delegation_id TEXT NOT NULL,
  revocation_id TEXT NOT NULL,
  status BIGINT NOT NULL DEFAULT 0,
  attestation_id TEXT NOT NULL DEFAULT '',
  place BIGINT
);
CREATE INDEX task_delegations_to_tell ON task_delegations (place) WHERE place IS NOT NULL;
CREATE INDEX task_delegations_by_block ON task_delegations (revocation_id, task_id);
`;

// The A2A message that contains the answer; NULL for an answer without a message.
const PROVIDED_MESSAGES = `
ALTER TABLE task_provided_inputs ADD COLUMN message BLOB;
`;

// The indexes by which the erasure of an organization finds its records.
const BY_ORGANIZATION = `
CREATE INDEX tasks_by_organization ON tasks (organization, task_id) WHERE organization <> '';
CREATE INDEX contexts_by_organization ON contexts (organization, context_id) WHERE organization <> '';
`;

// The number of open tasks of each principal and each organization. An owner without open tasks has no row. `owner`
// contains the kind and the name of the owner.
const OPEN_TASKS = `
CREATE TABLE open_tasks (
  owner TEXT PRIMARY KEY,
  open BIGINT NOT NULL
);
`;

/** The tables of the task engine. */
export const CORE_MIGRATIONS: readonly Migration[] = [
  { id: 1, name: "tasks", sql: TASKS },
  { id: 2, name: "work", sql: WORK },
  { id: 3, name: "contexts", sql: CONTEXTS },
  { id: 4, name: "artifacts", sql: ARTIFACTS },
  { id: 5, name: "delegations", sql: DELEGATIONS },
  { id: 6, name: "provided messages", sql: PROVIDED_MESSAGES },
  { id: 7, name: "records by organization", sql: BY_ORGANIZATION },
  { id: 8, name: "open tasks", sql: OPEN_TASKS },
];
