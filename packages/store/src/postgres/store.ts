import { systemTimers } from "@depute/core";
import { Pool, type PoolConfig } from "pg";
import { GroupCommit } from "../group-commit.ts";
import type { OpenSettings, StoreSettings } from "../options.ts";
import type { Store } from "../store.ts";
import { StoreWatch } from "../watch.ts";
import { StoreClient } from "./client.ts";
import { PostgresConnection } from "./connection.ts";
import { databaseUnavailable, fromPostgresError, isFatal, isStarting } from "./errors.ts";
import { checkKeys, recordKeys } from "./keys.ts";
import { migrate } from "./migrate.ts";
import { SchemaOwner } from "./owner.ts";
import { PostgresReader } from "./reader.ts";
import { valueTypes } from "./values.ts";

/** Connections that read. */
const READERS = 4;
/** Milliseconds to wait for one of them. */
const WAIT_LIMIT_MS = 5_000;
/** Milliseconds to open a connection in. Short, so that a try that began before the database was back ends soon. */
const CONNECT_LIMIT_MS = 1_500;
/** Milliseconds for the database to end the connections in. */
const CLOSE_LIMIT_MS = 1_000;
/** Milliseconds between tries to open a schema whose database went away meanwhile. */
const REOPEN_MS = 250;

/**
 * Opens a schema of a Postgres database: one connection that writes and a few that read.
 *
 * @param url `postgres://user:password@host:port/database`
 * @param schema created when missing; lower-case letters, digits and _
 */
export async function openPostgres(
  url: string,
  schema: string,
  migrations: StoreSettings["migrations"],
  settings: OpenSettings,
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
  const { keys } = settings;
  const owner = new SchemaOwner(schema, settings.timers);
  const clients = new Set<StoreClient>();
  const made = (client: StoreClient) => {
    clients.add(client);
    client.once("end", () => clients.delete(client));
    return client;
  };
  let isClosed = false;
  let wasReached = false;
  /** Rejects with node-postgres' own error. */
  const connect = async (ready: (client: StoreClient) => Promise<void>) => {
    if (isClosed) throw databaseUnavailable(undefined);
    const client = made(new StoreClient({ ...config, pipeline: true } as PoolConfig));
    try {
      await client.connect();
      wasReached = true;
      await client.query("SET synchronous_commit = on");
      if (keys !== undefined) await checkKeys(client, schema, keys);
      await owner.take(client, async () => {
        if (keys !== undefined) await recordKeys(client, keys);
      });
      await ready(client);
      return client;
    } catch (error) {
      const isLoss = client.isBroken || isFatal(error);
      client.destroy();
      throw isLoss ? new ConnectionLoss(error) : fromPostgresError(error);
    }
  };
  const first = await untilOpen(
    () => connect((client) => migrate(client, migrations)),
    () => wasReached,
    settings,
  );
  const watch = new StoreWatch(settings);
  const onFailure = (error: Error) => watch.suspect(error);
  const connection = new PostgresConnection({
    connect: () => connect(async () => {}).catch(asFailure),
    first,
    onBreak: () => watch.suspect(databaseUnavailable(undefined)),
  });
  class Reading extends StoreClient {
    constructor() {
      super(config);
      made(this);
    }
  }
  const openPool = () => {
    const pool = new Pool({
      ...config,
      connectionTimeoutMillis: WAIT_LIMIT_MS,
      max: READERS,
      Client: Reading,
    });
    pool.on("error", (error) => settings.onError(error, "a connection of the store broke"));
    return pool;
  };
  const writer = new GroupCommit({ connection, onFailure, ...settings });
  const reader = new PostgresReader({ openPool, onFailure, ...settings });
  watch.start({
    look: () => writer.write(async (tx) => void (await tx.get("SELECT 1"))),
    store: { read: (fn) => reader.read(fn), write: (fn) => writer.write(fn) },
    onBack: () => reader.renew(),
  });
  let closed: Promise<void> | undefined;
  const close = async () => {
    watch.close();
    await Promise.all([reader.done(), writer.close()]);
    isClosed = true;
    // A database that no longer answers does not say goodbye.
    const limit = setTimeout(() => {
      for (const client of clients) client.destroy();
    }, CLOSE_LIMIT_MS);
    await Promise.all([reader.close(), connection.close()]);
    clearTimeout(limit);
    for (const client of clients) client.destroy();
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

/** A connection broke while it was made ready. */
class ConnectionLoss extends Error {
  constructor(cause: unknown) {
    super("the connection to the database broke", { cause });
  }
}

function asFailure(error: unknown): never {
  throw error instanceof ConnectionLoss ? databaseUnavailable(error.cause) : error;
}

/**
 * Opens the schema, again and again while the database goes away in the middle of it.
 *
 * @throws DeputeError DEPENDENCY_UNAVAILABLE when the database cannot be reached at all, or another process has the schema
 */
async function untilOpen(
  open: () => Promise<StoreClient>,
  wasReached: () => boolean,
  { timers = systemTimers, onError }: OpenSettings,
): Promise<StoreClient> {
  for (;;) {
    try {
      return await open();
    } catch (error) {
      if (!(error instanceof ConnectionLoss) || !(wasReached() || isStarting(error.cause))) asFailure(error);
      onError(error, "the database went away while the store was opened; trying again");
      await new Promise<void>((resolve) => timers.after(REOPEN_MS, resolve));
    }
  }
}
