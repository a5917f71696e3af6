import { createHash } from "node:crypto";

/** One step of a schema. A released one is never edited: its checksum is kept in the database. */
export interface Migration {
  /** Positive, ascending through the list of its module. */
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

/**
 * The steps of a database: one list, or a list for each module that has tables in it. Modules number their steps and keep
 * their checksums by themselves, and are applied in the order in which they stand here. One list is that of the module
 * with the empty name.
 */
export type Migrations = readonly Migration[] | Readonly<Record<string, readonly Migration[]>>;

/** A step of a module. */
export interface ModuleMigration extends Migration {
  readonly module: string;
}

/** What a database remembers of a migration. */
export interface AppliedMigration {
  readonly module: string;
  readonly id: number;
  readonly checksum: string;
}

/** The database and the code do not fit, so the store does not open. */
export class MigrationError extends Error {
  override readonly name = "MigrationError";
}

/** The refusal of a database whose record of migrations has another form. @param cause what reading that record threw */
export function foreignRecord(cause: unknown): MigrationError {
  return new MigrationError(
    "the database was made by an earlier revision or another program, so its tables cannot be used; start with an empty one",
    { cause },
  );
}

/** SHA-256 of the statements of both dialects, in hexadecimal: a change of either is a change of the migration. */
export function checksum({ sql, postgres = "" }: Migration): string {
  // No statement has a NUL, so no two pairs of texts are joined to the same one.
  return createHash("sha256").update(`${sql}\0${postgres}`).digest("hex");
}

/**
 * Those of `migrations` that a database still needs, module by module, in order.
 *
 * @param applied what the database remembers, by ascending id
 * @throws MigrationError when a list is out of order, when an applied migration is changed or missing in it, when one before
 *   the last applied was never applied, and when the database is newer than a list or has a module that the program lacks
 */
export function pendingMigrations(
  migrations: Migrations,
  applied: readonly AppliedMigration[],
): readonly ModuleMigration[] {
  const modules = byModule(migrations);
  const unknown = applied.find(({ module }) => !modules.has(module));
  if (unknown !== undefined) {
    throw new MigrationError(
      `the database has tables of the module "${unknown.module}", which this program does not have`,
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

/** How messages name a migration: `tasks/3`, or `3` in a database of one list. */
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
        `the database is at migration ${place(id)}, newer than this program, which ends at ${place(last)}`,
      );
    }
    const step = steps[i];
    if (step === undefined || step.id > id) {
      throw new MigrationError(
        `migration ${place(id)} was applied to the database, and the program has it no more`,
      );
    }
    if (step.id < id) {
      throw new MigrationError(
        `migration ${place(step.id)} (${step.name}) was never applied, and ${place(id)} was`,
      );
    }
    if (checksum(step) !== known) {
      throw new MigrationError(
        `migration ${place(id)} (${step.name}) was changed after it was applied; add a new one`,
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
        `migration ids are positive integers that ascend, but ${placeOf({ module, id })} follows ${previous}`,
      );
    }
    if (/\binitially\s+deferred\b/i.test(`${sql}\n${postgres}`)) {
      throw new MigrationError(
        `migration ${placeOf({ module, id })} (${name}) has a deferred constraint; writes share their commit`,
      );
    }
    previous = id;
  }
}
