import type { Clock } from "@depute/core";
import {
  APPLIED_MIGRATION,
  type AppliedMigration,
  checksum,
  foreignRecord,
  MigrationError,
  type Migrations,
  type ModuleMigration,
  pendingMigrations,
  placeOf,
  READ_APPLIED,
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
 * Applies pending migrations, each in its own transaction. If several stores open one file, they migrate one after the
 * other. The migration runs without pause between BEGIN and COMMIT, because a store that waits for the lock blocks the
 * event loop.
 *
 * @throws MigrationError when database and program have different schemas, or a migration fails
 */
export function migrate(connection: SqliteConnection, migrations: Migrations, clock: Clock): void {
  while (applyNext(connection, migrations, clock));
}

function applyNext(connection: SqliteConnection, migrations: Migrations, clock: Clock): boolean {
  connection.exec("BEGIN IMMEDIATE");
  try {
    connection.run(SCHEMA);
    const [next] = pendingMigrations(migrations, appliedTo(connection));
    if (next !== undefined) apply(connection, next, clock);
    connection.exec("COMMIT");
    return next !== undefined;
  } catch (error) {
    if (connection.isInTransaction) connection.exec("ROLLBACK");
    throw error;
  }
}

function appliedTo(connection: SqliteConnection): AppliedMigration[] {
  try {
    return connection.all(READ_APPLIED).map(APPLIED_MIGRATION.check);
  } catch (cause) {
    throw foreignRecord(cause);
  }
}

function apply(connection: SqliteConnection, migration: ModuleMigration, clock: Clock): void {
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
    throw new MigrationError(
      `migration ${placeOf(migration)} (${name}) ended its transaction; remove its COMMIT or ROLLBACK`,
    );
  connection.run(
    "INSERT INTO schema_migrations (module, id, name, checksum, applied_time) VALUES (?, ?, ?, ?, ?)",
    [module, id, name, checksum(migration), clock.now()],
  );
}
