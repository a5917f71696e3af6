import { createHash } from "node:crypto";
import { integer, row, text } from "./row.ts";

/** One step of a schema. Never edit a released step: the database stores its checksum. */
export interface Migration {
  /** The number of the step, which is positive. Numbers ascend in the list of a module. */
  readonly id: number;
  readonly name: string;
  /**
   * Statements separated by semicolons. They contain no transaction control, because each migration is one
   * transaction. They contain no deferred constraints, because such a constraint would fail at a commit that
   * other writes share.
   */
  readonly sql: string;
  /** The statements for Postgres; absent when the automatic translation of `sql` is correct. */
  readonly postgres?: string;
}

/**
 * The migrations of a database: one list, or one list for each module that has tables in the database. Each module has
 * its own migration numbers and checksums. Modules migrate in the order of the properties. A single list has the empty
 * module name.
 */
export type Migrations = readonly Migration[] | Readonly<Record<string, readonly Migration[]>>;

/** A step with the name of its module. */
export interface ModuleMigration extends Migration {
  readonly module: string;
}

/** The record of an applied migration. */
export interface AppliedMigration {
  readonly module: string;
  readonly id: number;
  readonly checksum: string;
}

/** A row that {@link READ_APPLIED} returns. */
export const APPLIED_MIGRATION = row<AppliedMigration>({ module: text, id: integer, checksum: text });

/** Reads all applied migrations, by ascending id in each module. */
export const READ_APPLIED = "SELECT module, id, checksum FROM schema_migrations ORDER BY module, id";

/** Thrown when the database and the program have different schemas. The store then does not open. */
export class MigrationError extends Error {
  override readonly name = "MigrationError";
}

/**
 * Returns the error for a table of applied migrations that this program cannot read.
 *
 * @param cause the error of the read
 */
export function foreignRecord(cause: unknown): MigrationError {
  return new MigrationError(
    "an earlier revision or another program created the database, so its tables cannot be used; start with an empty database",
    { cause },
  );
}

/**
 * Returns the SHA-256 of the statements of both dialects, in hexadecimal. A change of either dialect's
 * statements changes the checksum.
 */
export function checksum({ sql, postgres = "" }: Migration): string {
  // No statement contains NUL. Therefore two different pairs of statements never give the same joined text.
  return createHash("sha256").update(`${sql}\0${postgres}`).digest("hex");
}

/**
 * Returns the migrations that a database still needs, module by module, in order.
 *
 * @param applied the recorded migrations, by ascending id
 * @throws MigrationError when the numbers of a list do not ascend; when a migration has a deferred constraint; when an
 * applied migration has another checksum than in the list, or is missing from the list; when a pending migration has a
 * lower number than an applied one; when the database is newer than a list; or when the program lacks a module of the
 * database
 */
export function pendingMigrations(
  migrations: Migrations,
  applied: readonly AppliedMigration[],
): readonly ModuleMigration[] {
  const modules = byModule(migrations);
  const unknown = applied.find(({ module }) => !modules.has(module));
  if (unknown !== undefined) {
    throw new MigrationError(
      `the database has tables of the module "${unknown.module}", which this program does not have; start the program that created them`,
    );
  }
  return [...modules].flatMap(([module, steps]) =>
    pendingSteps(
      module,
      steps,
      applied.filter((one) => one.module === module),
    ).map((step) => ({ ...step, module })),
  );
}

/** Returns the name of a migration in messages: `tasks/3`, or `3` in a database with one list. */
export function placeOf({ module, id }: Pick<ModuleMigration, "module" | "id">): string {
  return module === "" ? String(id) : `${module}/${id}`;
}

function byModule(migrations: Migrations): ReadonlyMap<string, readonly Migration[]> {
  return new Map(isOneList(migrations) ? [["", migrations]] : Object.entries(migrations));
}

function isOneList(migrations: Migrations): migrations is readonly Migration[] {
  return Array.isArray(migrations);
}

function pendingSteps(
  module: string,
  steps: readonly Migration[],
  applied: readonly AppliedMigration[],
): readonly Migration[] {
  checkList(module, steps);
  const place = (id: number) => placeOf({ module, id });
  const last = steps.at(-1)?.id ?? 0;
  for (const [i, { id, checksum: known }] of applied.entries()) {
    if (id > last) {
      throw new MigrationError(
        `the database is at migration ${place(id)}, newer than this program, which ends at ${place(last)}; start a newer program`,
      );
    }
    const step = steps[i];
    if (step === undefined || step.id > id) {
      throw new MigrationError(
        `migration ${place(id)} was applied to the database, but this program does not have it; start a newer program`,
      );
    }
    if (step.id < id) {
      throw new MigrationError(
        `migration ${place(step.id)} (${step.name}) was never applied, but ${place(id)} was; give it a higher id`,
      );
    }
    if (checksum(step) !== known) {
      throw new MigrationError(
        `migration ${place(id)} (${step.name}) was changed after it was applied; undo the change and add another migration`,
      );
    }
  }
  return steps.slice(applied.length);
}

function checkList(module: string, steps: readonly Migration[]): void {
  let previous = 0;
  for (const { id, name, sql, postgres = "" } of steps) {
    if (!Number.isSafeInteger(id) || id <= previous) {
      throw new MigrationError(
        `migration ids must be positive integers in ascending order, but ${placeOf({ module, id })} follows ${previous}`,
      );
    }
    if (/\binitially\s+deferred\b/i.test(`${sql}\n${postgres}`)) {
      throw new MigrationError(
        `migration ${placeOf({ module, id })} (${name}) has a deferred constraint; make it immediate, because writes share a commit`,
      );
    }
    previous = id;
  }
}
