import { systemClock } from "@depute/core";
import {
  type AppliedMigration,
  checksum,
  type Migration,
  MigrationError,
  pendingMigrations,
} from "../migrations.ts";
import type { SqliteConnection } from "./connection.ts";

const SCHEMA = `CREATE TABLE IF NOT EXISTS schema_migrations (
  id INTEGER PRIMARY KEY,
  name TEXT NOT NULL,
  checksum TEXT NOT NULL,
  applied_time INTEGER NOT NULL -- milliseconds since the Unix epoch
) STRICT`;

/**
 * Applies what is missing, each in a transaction of its own. Those who open a file together do it one after the other: nobody
 * gets a turn between BEGIN and COMMIT, since waiting for a lock blocks the event loop.
 */
export function migrate(connection: SqliteConnection, migrations: readonly Migration[]): void {
  while (applyNext(connection, migrations));
}

function applyNext(connection: SqliteConnection, migrations: readonly Migration[]): boolean {
  connection.exec("BEGIN IMMEDIATE");
  try {
    connection.run(SCHEMA);
    const applied = connection.all<AppliedMigration>(
      "SELECT id, checksum FROM schema_migrations ORDER BY id",
    );
    const [next] = pendingMigrations(migrations, applied);
    if (next !== undefined) apply(connection, next);
    connection.exec("COMMIT");
    return next !== undefined;
  } catch (error) {
    if (connection.isInTransaction) connection.exec("ROLLBACK");
    throw error;
  }
}

function apply(connection: SqliteConnection, migration: Migration): void {
  const { id, name, sql } = migration;
  try {
    connection.exec(sql);
  } catch (cause) {
    throw new MigrationError(`migration ${id} (${name}) failed: ${(cause as Error).message}`, { cause });
  }
  if (!connection.isInTransaction)
    throw new MigrationError(`migration ${id} (${name}) ended its transaction`);
  connection.run("INSERT INTO schema_migrations (id, name, checksum, applied_time) VALUES (?, ?, ?, ?)", [
    id,
    name,
    checksum(migration),
    systemClock.now(),
  ]);
}
