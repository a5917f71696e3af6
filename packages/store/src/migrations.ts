import { createHash } from "node:crypto";

/** One step of a schema. A released one is never edited: its checksum is kept in the database. */
export interface Migration {
  /** Positive, ascending through the list. */
  readonly id: number;
  readonly name: string;
  /**
   * Statements separated by semicolons. No transaction control, as each migration is one transaction; no deferred
   * constraints, as they would fail at the commit that other writes share.
   */
  readonly sql: string;
  /** The same for Postgres, where it takes other statements. Types and tables are translated, this is for the rest. */
  readonly postgres?: string;
}

/** What a database remembers of a migration. */
export interface AppliedMigration {
  readonly id: number;
  readonly checksum: string;
}

/** The database and the code do not fit, so the store does not open. */
export class MigrationError extends Error {
  override readonly name = "MigrationError";
}

/** SHA-256 of the statements, in hexadecimal. */
export function checksum(migration: Migration): string {
  return createHash("sha256").update(migration.sql).digest("hex");
}

/**
 * Those of `migrations` that a database still needs, in order.
 *
 * @param applied what the database remembers, by ascending id
 * @throws MigrationError when the list is out of order, when an applied migration is changed or missing in it, when one
 *   before the last applied was never applied, and when the database is newer than the list
 */
export function pendingMigrations(
  migrations: readonly Migration[],
  applied: readonly AppliedMigration[],
): readonly Migration[] {
  checkList(migrations);
  const last = migrations.at(-1)?.id ?? 0;
  for (const [i, { id, checksum: known }] of applied.entries()) {
    if (id > last) {
      throw new MigrationError(
        `the database is at migration ${id}, newer than this program, which ends at ${last}`,
      );
    }
    const migration = migrations[i];
    if (migration === undefined || migration.id > id) {
      throw new MigrationError(`migration ${id} was applied to the database, and the program has it no more`);
    }
    if (migration.id < id) {
      throw new MigrationError(
        `migration ${migration.id} (${migration.name}) was never applied, and ${id} was`,
      );
    }
    if (checksum(migration) !== known) {
      throw new MigrationError(
        `migration ${id} (${migration.name}) was changed after it was applied; add a new one`,
      );
    }
  }
  return migrations.slice(applied.length);
}

function checkList(migrations: readonly Migration[]): void {
  let previous = 0;
  for (const { id, name, sql } of migrations) {
    if (!Number.isSafeInteger(id) || id <= previous) {
      throw new MigrationError(
        `migration ids are positive integers that ascend, but ${id} follows ${previous}`,
      );
    }
    if (/\binitially\s+deferred\b/i.test(sql)) {
      throw new MigrationError(
        `migration ${id} (${name}) has a deferred constraint; writes share their commit`,
      );
    }
    previous = id;
  }
}
