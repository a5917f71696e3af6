import type { Migration } from "@depute/store";

// Work at endpoints; a row with a time is a cancellation that its endpoint has still to take.
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

/** The tables of work at agents' own endpoints, in the store of the tasks: they change with the task. */
export const PUSH_MIGRATIONS: readonly Migration[] = [{ id: 1, name: "remotes", sql: REMOTES }];
