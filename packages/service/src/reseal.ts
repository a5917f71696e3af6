import {
  type Migrations,
  openStore,
  row,
  type Store,
  StoreKeyError,
  type StoreLocation,
  text,
} from "@depute/store";
import { fingerprintOf, SealedSecrets, type SecretContext } from "./sealed-secrets.ts";

/** A table with a column `sealed`, which contains secrets that the master key seals. */
export interface SealedTable {
  readonly table: string;
  /** The column of the primary key, whose values are texts. */
  readonly key: string;
  /** Further columns that `contextOf` needs. Their values are texts. */
  readonly columns: readonly string[];
  /** Returns the context of a row's secret. */
  contextOf(row: Readonly<Record<string, string>>): SecretContext;
}

export interface ResealOptions {
  readonly place: StoreLocation;
  readonly migrations: Migrations;
  readonly tables: readonly SealedTable[];
  /** The old and the new master key, 32 bytes each. */
  readonly from: Uint8Array;
  readonly to: Uint8Array;
  readonly onError: (error: unknown, message: string) => void;
}

/** Maximum number of rows in one transaction. */
const ROWS = 500;

/** Thrown for a secret that neither the old nor the new master key opens. The stored secret stays unchanged. */
export class UnopenedSecretError extends Error {
  override readonly name = "UnopenedSecretError";
}

/**
 * Seals the secrets of a store with another master key. The store records the new key before the first secret changes.
 * From then on no service opens the store with the old key. After an interruption, call the function again: secrets
 * that the new key already opens stay unchanged.
 *
 * @returns the number of secrets that this call sealed with the new key
 * @throws StoreKeyError for a store that neither of the two master keys has sealed
 * @throws UnopenedSecretError; the other errors of `openStore`
 */
export async function resealStore(options: ResealOptions): Promise<number> {
  const { place, migrations, onError, from, to } = options;
  const fingerprints = { old: fingerprintOf(from), new: fingerprintOf(to) };
  const open = (master: string, replaced: readonly string[]) =>
    openStore({ ...place, migrations, onError, keys: { fingerprints: { master }, replaced } });
  // Without this check, a store that a third key sealed would record the new key.
  await open(fingerprints.old, []).then(
    (store) => store.close(),
    async (error) => {
      if (!(error instanceof StoreKeyError)) throw error;
      await (await open(fingerprints.new, [])).close();
    },
  );
  const store = await open(fingerprints.new, ["master"]);
  try {
    let count = 0;
    for (const table of options.tables) count += await resealTable(store, table, options);
    return count;
  } finally {
    await store.close();
  }
}

async function resealTable(store: Store, table: SealedTable, { from, to }: ResealOptions): Promise<number> {
  const { key, columns } = table;
  const names = [key, ...columns.filter((name) => name !== key)];
  const rowType = row(Object.fromEntries([...names, "sealed"].map((name) => [name, text])));
  const select = `SELECT ${names.join(", ")}, sealed FROM ${table.table} WHERE ${key} > ? ORDER BY ${key} LIMIT ${ROWS}`;
  const update = `UPDATE ${table.table} SET sealed = ? WHERE ${key} = ?`;
  const old = new SealedSecrets(from);
  const next = new SealedSecrets(to);
  let count = 0;
  for (let after = ""; ; ) {
    const rows = await store.write(async (tx) => {
      const found = (await tx.all(rowType, select, [after])) as Readonly<Record<string, string>>[];
      for (const each of found) {
        const sealed = sealedAgain(each, table, old, next);
        if (sealed === undefined) continue;
        await tx.run(update, [sealed, each[key] ?? ""]);
        count += 1;
      }
      return found;
    });
    if (rows.length < ROWS) return count;
    after = rows.at(-1)?.[key] ?? "";
  }
}

/** Returns the secret of a row, sealed by the new key; undefined if the new key has sealed it already. */
function sealedAgain(
  found: Readonly<Record<string, string>>,
  { table, key, contextOf }: SealedTable,
  old: SealedSecrets,
  next: SealedSecrets,
): string | undefined {
  const context = contextOf(found);
  const { sealed = "" } = found;
  if (next.open(sealed, context) !== undefined) return undefined;
  const secret = old.open(sealed, context);
  if (secret === undefined) {
    throw new UnopenedSecretError(
      `neither the old nor the new master key opens the secret of ${table} ${found[key]}`,
    );
  }
  const again = next.seal(secret, context);
  secret.fill(0);
  return again;
}
