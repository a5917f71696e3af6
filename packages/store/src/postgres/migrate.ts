import type { Clock } from "@depute/core";
import { LEASE_TABLE } from "../leases.ts";
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
import type { Cells } from "../row.ts";
import { probeTable } from "../watch.ts";
import type { StoreClient } from "./client.ts";
import { FUNCTIONS, toPostgresSchema } from "./dialect.ts";
import { endsConnection } from "./errors.ts";
import { VERSION_TABLE } from "./turns.ts";

const SCHEMA = `CREATE TABLE IF NOT EXISTS schema_migrations (
  module TEXT NOT NULL,
  id BIGINT NOT NULL,
  name TEXT NOT NULL,
  checksum TEXT NOT NULL,
  applied_time BIGINT NOT NULL, -- milliseconds since the Unix epoch
  PRIMARY KEY (module, id)
)`;

/**
 * Applies pending migrations, each in its own transaction. Call this function only while this process owns the schema,
 * so that no other process changes the schema. After a broken connection, the function may be called again.
 *
 * @throws MigrationError when database and program have different schemas, or a migration fails; node-postgres' own
 * error when the connection broke
 */
export async function migrate(client: StoreClient, migrations: Migrations, clock: Clock): Promise<void> {
  await client.query(SCHEMA);
  await client.query(FUNCTIONS);
  await client.query(probeTable("BYTEA"));
  await client.query(VERSION_TABLE);
  await client.query(LEASE_TABLE);
  for (const migration of pendingMigrations(migrations, await appliedTo(client)))
    await apply(client, migration, clock);
}

async function appliedTo(client: StoreClient): Promise<AppliedMigration[]> {
  try {
    return (await client.query<Cells>(READ_APPLIED)).rows.map(APPLIED_MIGRATION.check);
  } catch (cause) {
    throw endsConnection(cause) ? cause : foreignRecord(cause);
  }
}

async function apply(client: StoreClient, migration: ModuleMigration, clock: Clock): Promise<void> {
  const { module, id, name, sql, postgres } = migration;
  await client.query("BEGIN");
  let hasCommitted: boolean;
  try {
    await client.query(toPostgresSchema(postgres ?? sql));
    await client.query(
      "INSERT INTO schema_migrations (module, id, name, checksum, applied_time) VALUES ($1, $2, $3, $4, $5)",
      [module, id, name, checksum(migration), clock.now()],
    );
    const { command } = await client.query("COMMIT");
    hasCommitted = command === "COMMIT";
  } catch (cause) {
    if (endsConnection(cause)) throw cause;
    await client.query("ROLLBACK");
    throw new MigrationError(
      `migration ${placeOf(migration)} (${name}) failed: ${(cause as Error).message}`,
      { cause },
    );
  }
  if (!hasCommitted)
    throw new MigrationError(`migration ${placeOf(migration)} (${name}) failed: the database aborted it`);
}
