import { systemClock } from "@depute/core";
import type { Client } from "pg";
import {
  type AppliedMigration,
  checksum,
  type Migration,
  MigrationError,
  pendingMigrations,
} from "../migrations.ts";
import { FUNCTIONS, toPostgresSchema } from "./dialect.ts";

const SCHEMA = `CREATE TABLE IF NOT EXISTS schema_migrations (
  id BIGINT PRIMARY KEY,
  name TEXT NOT NULL,
  checksum TEXT NOT NULL,
  applied_time BIGINT NOT NULL -- milliseconds since the Unix epoch
)`;

/** Applies what is missing, each in a transaction of its own. The caller owns the schema, so nobody else is at it. */
export async function migrate(client: Client, migrations: readonly Migration[]): Promise<void> {
  await client.query(SCHEMA);
  await client.query(FUNCTIONS);
  const { rows } = await client.query<AppliedMigration>(
    "SELECT id, checksum FROM schema_migrations ORDER BY id",
  );
  for (const migration of pendingMigrations(migrations, rows)) await apply(client, migration);
}

async function apply(client: Client, migration: Migration): Promise<void> {
  const { id, name, sql, postgres } = migration;
  await client.query("BEGIN");
  try {
    await client.query(toPostgresSchema(postgres ?? sql));
    await client.query(
      "INSERT INTO schema_migrations (id, name, checksum, applied_time) VALUES ($1, $2, $3, $4)",
      [id, name, checksum(migration), systemClock.now()],
    );
    const { command } = await client.query("COMMIT");
    if (command !== "COMMIT") throw new Error("it was given up");
  } catch (cause) {
    await client.query("ROLLBACK");
    throw new MigrationError(`migration ${id} (${name}) failed: ${(cause as Error).message}`, { cause });
  }
}
