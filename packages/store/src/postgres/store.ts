import { Client, Pool, type PoolConfig } from "pg";
import { GroupCommit } from "../group-commit.ts";
import type { StoreOptions } from "../open.ts";
import type { Store } from "../store.ts";
import { PostgresConnection } from "./connection.ts";
import { databaseUnavailable, fromPostgresError } from "./errors.ts";
import { migrate } from "./migrate.ts";
import { SchemaOwner } from "./owner.ts";
import { PostgresReader } from "./reader.ts";
import { valueTypes } from "./values.ts";

/** Connections that read. */
const READERS = 4;
/** Milliseconds to open a connection in. */
const CONNECT_LIMIT_MS = 5_000;

type Settings = Pick<StoreOptions, "onError" | "timers"> & {
  readonly maxWaiting: number;
  readonly maxBatch: number;
  readonly transactionLimitMs: number;
};

/**
 * Opens a schema of a Postgres database: one connection that writes and a few that read.
 *
 * @param url `postgres://user:password@host:port/database`
 * @param schema created when missing; lower-case letters, digits and _
 */
export async function openPostgres(
  url: string,
  schema: string,
  migrations: StoreOptions["migrations"],
  settings: Settings,
): Promise<Store> {
  if (!/^[a-z][a-z0-9_]{0,62}$/.test(schema))
    throw new Error(`not a name for a schema: ${schema.slice(0, 64)}`);
  const config: PoolConfig = {
    connectionString: url,
    options: `-c search_path=${schema}`,
    application_name: `depute ${schema}`,
    connectionTimeoutMillis: CONNECT_LIMIT_MS,
    // A database that no longer answers is given up, so that nobody waits for ever.
    query_timeout: 2 * settings.transactionLimitMs,
    keepAlive: true,
    types: valueTypes as NonNullable<PoolConfig["types"]>,
  };
  const owner = new SchemaOwner(schema, settings.timers);
  const connect = async () => {
    const client = new Client({ ...config, pipeline: true } as PoolConfig);
    // Its breaking shows in whatever uses it.
    client.on("error", () => {});
    try {
      await client.connect();
      await client.query("SET synchronous_commit = on");
      await owner.take(client);
      return client;
    } catch (error) {
      await client.end().catch(() => {});
      throw fromPostgresError(error);
    }
  };
  const first = await connect();
  try {
    await migrate(first, migrations);
  } catch (error) {
    await first.end();
    throw error;
  }
  let isFirst = true;
  let isClosed = false;
  const connection = new PostgresConnection(async () => {
    if (isClosed) throw databaseUnavailable(undefined);
    if (!isFirst) return connect();
    isFirst = false;
    return first;
  });
  const pool = new Pool({ ...config, max: READERS });
  pool.on("error", (error) => settings.onError(error, "a connection of the store broke"));
  const writer = new GroupCommit({ connection, ...settings });
  const reader = new PostgresReader({ pool, ...settings });
  let closed: Promise<void> | undefined;
  const close = async () => {
    await Promise.all([reader.close(), writer.close()]);
    isClosed = true;
    if (isFirst) await first.end();
    await connection.close();
  };
  return {
    read: (fn) => reader.read(fn),
    write: (fn, options) => writer.write(fn, options),
    close: () => {
      closed ??= close();
      return closed;
    },
  };
}
