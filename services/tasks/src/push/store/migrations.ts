import type { Migration } from "@depute/store";

// Tasks at endpoints. A row with `owed_ms` is a cancellation that the endpoint has not acknowledged.
const REMOTES = `
CREATE TABLE push_remotes (
  remote_id TEXT PRIMARY KEY,
  task_id TEXT NOT NULL,
  endpoint TEXT NOT NULL,
  terms TEXT NOT NULL,
  last_event_id TEXT NOT NULL,
  owed_ms BIGINT,
  reason TEXT NOT NULL DEFAULT '',
  tries BIGINT NOT NULL DEFAULT 0
);
CREATE INDEX push_remotes_by_task ON push_remotes (task_id) WHERE owed_ms IS NULL;
CREATE INDEX push_remotes_owed ON push_remotes (owed_ms) WHERE owed_ms IS NOT NULL;
`;

/**
 * The tables of work at agents' endpoints. They are in the tasks store, because one transaction changes a task and its
 * row here.
 */
export const PUSH_MIGRATIONS: readonly Migration[] = [
  { id: 1, name: "remotes", sql: REMOTES },
  {
    id: 2,
    name: "state at A2A agents",
    sql: "ALTER TABLE push_remotes ADD COLUMN peer_state TEXT NOT NULL DEFAULT ''",
  },
];
