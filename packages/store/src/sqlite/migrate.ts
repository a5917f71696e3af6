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

/** Applies what is missing, each in a transaction of its own. Processes that start together do it one after the other. */
export async function migrate(connection: SqliteConnection, migrations: readonly Migration[]): Promise<void> {
  while (await applyNext(connection, migrations));
}

async function applyNext(connection: SqliteConnection, migrations: readonly Migration[]): Promise<boolean> {
  await connection.begin();
  try {
    connection.run(SCHEMA);
    const applied = connection.all<AppliedMigration>(
      "SELECT id, checksum FROM schema_migrations ORDER BY id",
    );
    const [next] = pendingMigrations(migrations, applied);
    if (next !== undefined) {
      apply(connection, next);
    }
    await connection.commit();
    return next !== undefined;
  } catch (error) {
    if (connection.isInTransaction) await connection.rollback();
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
