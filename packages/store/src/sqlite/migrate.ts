import { systemClock } from "@depute/core";
import {
  type AppliedMigration,
  checksum,
  foreignRecord,
  MigrationError,
  type Migrations,
  type ModuleMigration,
  pendingMigrations,
  placeOf,
} from "../migrations.ts";
import type { SqliteConnection } from "./connection.ts";

const SCHEMA = `CREATE TABLE IF NOT EXISTS schema_migrations (
  module TEXT NOT NULL,
  id INTEGER NOT NULL,
  name TEXT NOT NULL,
  checksum TEXT NOT NULL,
  applied_time INTEGER NOT NULL, -- milliseconds since the Unix epoch
  PRIMARY KEY (module, id)
) STRICT`;

/**
 * Applies what is missing, each in a transaction of its own. Those who open a file together do it one after the other: nobody
 * gets a turn between BEGIN and COMMIT, since waiting for a lock blocks the event loop.
 */
export function migrate(connection: SqliteConnection, migrations: Migrations): void {
  while (applyNext(connection, migrations));
}

function applyNext(connection: SqliteConnection, migrations: Migrations): boolean {
  connection.exec("BEGIN IMMEDIATE");
  try {
    connection.run(SCHEMA);
    const [next] = pendingMigrations(migrations, appliedTo(connection));
    if (next !== undefined) apply(connection, next);
    connection.exec("COMMIT");
    return next !== undefined;
  } catch (error) {
    if (connection.isInTransaction) connection.exec("ROLLBACK");
    throw error;
  }
}

function appliedTo(connection: SqliteConnection): AppliedMigration[] {
  try {
    return connection.all("SELECT module, id, checksum FROM schema_migrations ORDER BY module, id");
  } catch (cause) {
    throw foreignRecord(cause);
  }
}

function apply(connection: SqliteConnection, migration: ModuleMigration): void {
  const { module, id, name, sql } = migration;
  try {
    connection.exec(sql);
  } catch (cause) {
    throw new MigrationError(
      `migration ${placeOf(migration)} (${name}) failed: ${(cause as Error).message}`,
      { cause },
    );
  }
  if (!connection.isInTransaction)
    throw new MigrationError(`migration ${placeOf(migration)} (${name}) ended its transaction`);
  connection.run(
    "INSERT INTO schema_migrations (module, id, name, checksum, applied_time) VALUES (?, ?, ?, ?, ?)",
    [module, id, name, checksum(migration), systemClock.now()],
  );
}
