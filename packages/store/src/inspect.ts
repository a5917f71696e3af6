import {
  APPLIED_MIGRATION,
  type AppliedMigration,
  foreignRecord,
  type Migrations,
  pendingMigrations,
  placeOf,
  READ_APPLIED,
} from "./migrations.ts";
import type { StoreLocation } from "./options.ts";

/** The state of a store's tables compared with a program's migrations. */
export type SchemaState =
  /** The store does not exist yet. The first start of the service creates the store. */
  | { readonly kind: "absent" }
  | {
      readonly kind: "known";
      /** The newest applied migration of each module, such as `core/4`. */
      readonly applied: readonly string[];
      /** The migrations that the next start applies, in order. */
      readonly pending: readonly { readonly place: string; readonly name: string }[];
    };

/**
 * Compares the tables of a store with a program's migrations, and changes nothing. Another process may use the store at
 * the same time.
 *
 * @throws MigrationError when the tables do not match the migrations, or are newer than the program; DeputeError
 * DEPENDENCY_UNAVAILABLE when the database does not answer; other errors of the database, such as for a damaged file
 */
export async function inspectStore(location: StoreLocation, migrations: Migrations): Promise<SchemaState> {
  const applied = await appliedAt(location);
  if (applied === undefined) return { kind: "absent" };
  const pending = pendingMigrations(migrations, applied);
  const newest = new Map(applied.map(({ module, id }) => [module, placeOf({ module, id })]));
  return {
    kind: "known",
    applied: [...newest.values()],
    pending: pending.map((step) => ({ place: placeOf(step), name: step.name })),
  };
}

async function appliedAt(location: StoreLocation): Promise<readonly AppliedMigration[] | undefined> {
  if (location.postgres !== undefined) {
    const { readAppliedInSchema } = await import("./postgres/inspect.ts");
    return checked(await readAppliedInSchema(location.postgres, location.schema, READ_APPLIED));
  }
  if (location.file === undefined) return undefined;
  const { readAppliedInFile } = await import("./sqlite/inspect.ts");
  return checked(readAppliedInFile(location.file, READ_APPLIED));
}

function checked(rows: readonly object[] | Error | undefined): readonly AppliedMigration[] | undefined {
  if (rows === undefined) return undefined;
  if (rows instanceof Error) throw foreignRecord(rows);
  try {
    return rows.map((cells) =>
      APPLIED_MIGRATION.check(cells as Parameters<typeof APPLIED_MIGRATION.check>[0]),
    );
  } catch (cause) {
    throw foreignRecord(cause);
  }
}
