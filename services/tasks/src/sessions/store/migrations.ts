import type { Migration } from "@depute/store";

// `outcome_due` is 1 from the end of a session until the registry has its outcome. `level` is the party's trust level
// when the party joined. This level determines the party's message rate. `registry_id` is the party's id in the
// registry, which differs from its URI.
const SESSIONS = `
CREATE TABLE sessions (
  session_id TEXT PRIMARY KEY,
  organization TEXT NOT NULL,
  create_ms BIGINT NOT NULL,
  deadline_ms BIGINT,
  outcome_due BIGINT NOT NULL,
  session TEXT NOT NULL
);
CREATE INDEX sessions_outcome_due ON sessions (session_id) WHERE outcome_due = 1;
CREATE INDEX sessions_by_deadline ON sessions (deadline_ms, session_id) WHERE deadline_ms IS NOT NULL;

CREATE TABLE session_parties (
  session_id TEXT NOT NULL,
  agent_id TEXT NOT NULL,
  principal TEXT NOT NULL,
  registry_id TEXT NOT NULL,
  level BIGINT NOT NULL,
  create_ms BIGINT NOT NULL,
  PRIMARY KEY (session_id, agent_id)
);
CREATE INDEX session_parties_by_agent ON session_parties (agent_id, create_ms, session_id);

CREATE TABLE session_messages (
  session_id TEXT NOT NULL,
  ordinal BIGINT NOT NULL,
  message_id TEXT NOT NULL,
  hash TEXT NOT NULL,
  receive_ms BIGINT NOT NULL,
  state BIGINT NOT NULL,
  envelope BLOB NOT NULL,
  PRIMARY KEY (session_id, ordinal)
);
CREATE UNIQUE INDEX session_messages_by_id ON session_messages (session_id, message_id);
`;

// Used proofs. A row stays until the proof has expired.
const PROOFS = `
CREATE TABLE session_proofs (
  proof_id TEXT PRIMARY KEY,
  expire_ms BIGINT NOT NULL
);
CREATE INDEX session_proofs_by_time ON session_proofs (expire_ms);
`;

// Accepted delegations. `task_id` is empty until the task exists, and for a delegation that gets no task. `due`
// counts changes of the delegation that the task does not reflect yet.
const WORKS = `
CREATE TABLE session_works (
  session_id TEXT NOT NULL,
  delegation_id TEXT NOT NULL,
  task_id TEXT NOT NULL,
  due BIGINT NOT NULL,
  PRIMARY KEY (session_id, delegation_id)
);
CREATE INDEX session_works_due ON session_works (session_id, delegation_id) WHERE due > 0;
`;

// Reports of delegates as evidence, the agents whose lists contain the evidence, and the sessions in which it was
// shown.
const EVIDENCE = `
CREATE TABLE session_evidence (
  session_id TEXT NOT NULL,
  delegation_id TEXT NOT NULL,
  asked_ordinal BIGINT NOT NULL,
  report_ordinal BIGINT NOT NULL,
  PRIMARY KEY (session_id, delegation_id)
);

CREATE TABLE session_evidence_parties (
  agent_id TEXT NOT NULL,
  report_ms BIGINT NOT NULL,
  session_id TEXT NOT NULL,
  delegation_id TEXT NOT NULL,
  PRIMARY KEY (agent_id, report_ms, session_id, delegation_id)
);

CREATE TABLE session_evidence_uses (
  session_id TEXT NOT NULL,
  delegation_id TEXT NOT NULL,
  used_in TEXT NOT NULL,
  PRIMARY KEY (session_id, delegation_id, used_in)
);
`;

// Disputes that parties filed. Other disputes follow from a session's messages, so no table stores them.
const DISPUTES = `
CREATE TABLE session_disputes (
  session_id TEXT NOT NULL,
  place BIGINT NOT NULL,
  dispute_id TEXT NOT NULL,
  dispute BLOB NOT NULL,
  PRIMARY KEY (session_id, place)
);
CREATE UNIQUE INDEX session_disputes_by_id ON session_disputes (session_id, dispute_id);
`;

// The allowances of agents, for a service with replicas. An agent without a row has a full allowance.
const RATES = `
CREATE TABLE session_rates (
  agent_id TEXT PRIMARY KEY,
  remaining REAL NOT NULL,
  at_ms BIGINT NOT NULL
);
CREATE INDEX session_rates_by_time ON session_rates (at_ms);
`;

/**
 * The tables of ASP sessions. Sessions have a separate store, so that a new message does not wait for transactions of
 * tasks.
 */
export const SESSION_MIGRATIONS: readonly Migration[] = [
  { id: 1, name: "sessions", sql: SESSIONS },
  { id: 2, name: "proofs", sql: PROOFS },
  { id: 3, name: "works", sql: WORKS },
  { id: 4, name: "evidence", sql: EVIDENCE },
  { id: 5, name: "disputes", sql: DISPUTES },
  { id: 6, name: "rates", sql: RATES },
];
