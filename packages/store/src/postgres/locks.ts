import type { StoreClient } from "./client.ts";

/**
 * The names of a schema's advisory locks. A Postgres session that writes holds `owner`. Processes that share the schema
 * hold `owner` in shared mode. The Postgres session that creates or changes the tables of a shared schema holds
 * `setup`. A transaction that writes to a shared schema holds `turn`.
 */
type LockName = "owner" | "setup" | "turn";

/** Returns the SQL expression for the number of a lock. Advisory locks belong to one database. */
function numberOf(lock: LockName, schema: string): string {
  // The lock `owner` has no prefix, because earlier versions of the program use the number without a prefix.
  const prefix = lock === "owner" ? "" : `${lock} `;
  return `hashtextextended('depute ${prefix}' || current_database() || ' ${schema}', 0)`;
}

/**
 * Takes a lock for the connection's Postgres session if the lock is free. Resolves to true if the session took the
 * lock.
 *
 * @param schema an identifier; see `openPostgres`
 */
export async function tryLock(
  client: StoreClient,
  lock: LockName,
  schema: string,
  mode: "exclusive" | "shared",
): Promise<boolean> {
  const take = mode === "shared" ? "pg_try_advisory_lock_shared" : "pg_try_advisory_lock";
  const { rows } = await client.query<{ held: number }>(`SELECT ${take}(${numberOf(lock, schema)}) AS held`);
  return rows[0]?.held === 1;
}

/** Releases an exclusive lock of the connection's Postgres session. */
export async function unlock(client: StoreClient, lock: LockName, schema: string): Promise<void> {
  await client.query(`SELECT pg_advisory_unlock(${numberOf(lock, schema)})`);
}

/** Returns the statement that waits for a lock and holds it until the end of the transaction. */
export function lockStatement(lock: LockName, schema: string): string {
  return `SELECT pg_advisory_xact_lock(${numberOf(lock, schema)})`;
}
