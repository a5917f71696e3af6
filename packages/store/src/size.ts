import type { StoreLocation } from "./options.ts";
import { integer, row } from "./row.ts";
import { databaseFileSize } from "./sqlite/size.ts";
import type { Store } from "./store.ts";

const SIZE = row({ bytes: integer });

/**
 * Returns the size of a store in bytes: a SQLite file with its write-ahead log, or the tables and indexes of a Postgres
 * schema. A store in memory has the size 0.
 *
 * @throws the errors of `read`; the error of `stat` for a file that cannot be inspected
 */
export async function storeSize(location: StoreLocation, { read }: Pick<Store, "read">): Promise<number> {
  if (location.file !== undefined) return databaseFileSize(location.file);
  if (location.postgres === undefined) return 0;
  const found = await read((tx) =>
    tx.get(
      SIZE,
      `SELECT CAST(coalesce(sum(pg_total_relation_size(c.oid)), 0) AS bigint) AS bytes FROM pg_class c
       JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = ? AND c.relkind = 'r'`,
      [location.schema],
    ),
  );
  return found?.bytes ?? 0;
}
