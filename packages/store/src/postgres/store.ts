import { Pool, type PoolConfig } from "pg";
import { GroupCommit } from "../group-commit.ts";
import type { OpenSettings, StoreSettings } from "../options.ts";
import { FOUND } from "../row.ts";
import type { Store } from "../store.ts";
import { StoreWatch } from "../watch.ts";
import { StoreClient } from "./client.ts";
import { PostgresConnection } from "./connection.ts";
import { databaseUnavailable, fromPostgresError, isFatal, isStarting, isTimeout } from "./errors.ts";
import { checkKeys, recordKeys } from "./keys.ts";
import { migrate } from "./migrate.ts";
import { SchemaOwner } from "./owner.ts";
import { assertOwnSession, isRefusedByPooler, refusedByPooler } from "./pooler.ts";
import { PostgresReader } from "./reader.ts";
import { readVersion, Turns } from "./turns.ts";
import { valueTypes } from "./values.ts";

/** Number of connections for reads. */
const READERS = 4;
/** Milliseconds that a read may wait for a connection. */
const WAIT_LIMIT_MS = 5_000;
/**
 * Maximum time in milliseconds to open a connection. The time is short, so that an attempt during an outage
 * fails soon.
 */
const CONNECT_LIMIT_MS = 1_500;
/**
 * Maximum milliseconds for which the store retries when its first connection does not open in time. On a busy host, one
 * attempt may be too short.
 */
const LATE_START_MS = 15_000;
/** Maximum time in milliseconds for the database to end the connections. */
const CLOSE_LIMIT_MS = 1_000;
/**
 * Maximum milliseconds between two statements of a transaction in a shared schema. After this time Postgres ends the
 * connection, so that a stopped process does not block the other processes.
 */
const IDLE_LIMIT_MS = 900;
/**
 * Milliseconds between attempts to open a schema. Only a connection that breaks or does not open leads to a new
 * attempt.
 */
const REOPEN_MS = 250;

/**
 * Opens a schema of a Postgres database: one connection that writes, and {@link READERS} connections that read. In a
 * shared schema, a transaction that writes waits for the turn of its process.
 *
 * @param url `postgres://user:password@host:port/database`
 * @param schema created when missing; lower-case letters, digits and _
 * @throws Error for a malformed name of a schema; StoreKeyError; MigrationError; DeputeError DEPENDENCY_UNAVAILABLE;
 * other errors of Postgres
 */
export async function openPostgres(
  url: string,
  schema: string,
  migrations: StoreSettings["migrations"],
  settings: OpenSettings,
): Promise<Store> {
  if (!/^[a-z][a-z0-9_]{0,62}$/.test(schema))
    throw new Error(`${schema.slice(0, 64)} is not a schema name; use lower-case letters, digits and _`);
  const config: PoolConfig = {
    connectionString: url,
    options: `-c search_path=${schema}`,
    application_name: `depute ${schema}`,
    connectionTimeoutMillis: CONNECT_LIMIT_MS,
    // Without this limit, callers would wait forever for a database that no longer answers.
    query_timeout: 2 * settings.transactionLimitMs,
    keepAlive: true,
    types: valueTypes as NonNullable<PoolConfig["types"]>,
  };
  const { keys, isShared } = settings;
  const owner = new SchemaOwner(schema, settings.timers, isShared);
  const clients = new Set<StoreClient>();
  const made = (client: StoreClient) => {
    clients.add(client);
    client.once("end", () => clients.delete(client));
    return client;
  };
  let isClosed = false;
  let wasReached = false;
  let isFirst = true;
  /**
   * Opens and prepares a connection. Rejects with ConnectionLoss if the connection does not open or breaks, otherwise
   * with an error of the store.
   */
  const connect = async (ready: (client: StoreClient) => Promise<void>) => {
    if (isClosed) throw databaseUnavailable(undefined);
    const client = made(new StoreClient({ ...config, pipeline: true } as PoolConfig));
    try {
      await client.connect();
      wasReached = true;
      await client.query("SET synchronous_commit = on");
      if (isShared) await client.query(`SET idle_in_transaction_session_timeout = ${IDLE_LIMIT_MS}`);
      if (isFirst) await assertOwnSession(client, schema, openSecond);
      if (keys !== undefined) await checkKeys(client, schema, keys);
      await owner.take(client, async () => {
        if (keys !== undefined) await recordKeys(client, keys);
      });
      await ready(client);
      isFirst = false;
      return client;
    } catch (error) {
      const isLoss = client.isBroken || isFatal(error);
      client.destroy();
      if (isRefusedByPooler(error)) throw refusedByPooler(error);
      throw isLoss ? new ConnectionLoss(error) : fromPostgresError(error);
    }
  };
  const openSecond = async () => {
    const client = made(new StoreClient({ ...config, pipeline: true } as PoolConfig));
    await client.connect();
    return client;
  };
  const first = await untilOpen(
    () =>
      connect(async (client) => {
        await migrate(client, migrations, settings.clock);
        await owner.endSetup(client);
      }),
    () => wasReached,
    settings,
  );
  const watch = new StoreWatch(settings);
  const onFailure = (error: Error) => watch.suspect(error);
  const turns = isShared ? new Turns(schema, settings.onError) : undefined;
  const connection = new PostgresConnection({
    connect: () => connect(async () => {}).catch(asFailure),
    first,
    onBreak: () => watch.suspect(databaseUnavailable(undefined)),
    turns,
  });
  class Reading extends StoreClient {
    constructor() {
      super({ ...config, pipeline: true } as PoolConfig);
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
    check: () => writer.write(async (tx) => void (await tx.get(FOUND, "SELECT 1"))),
    store: { read: (fn) => reader.read(fn), write: (fn) => writer.write(fn) },
    onRecovery: () => reader.renew(),
  });
  let closed: Promise<void> | undefined;
  const close = async () => {
    watch.close();
    await Promise.all([reader.done(), writer.close()]);
    isClosed = true;
    // Closing a connection to a database that no longer answers may never end, so the wait is limited.
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
    sharing: turns && {
      version: () => reader.read(readVersion),
      onOthersCommit: (listener) => turns.onOthersCommit(listener),
    },
    close: () => {
      closed ??= close();
      return closed;
    },
  };
}

/** Thrown when a connection does not open, or breaks while the store prepares the connection. */
class ConnectionLoss extends Error {
  constructor(cause: unknown) {
    super("the connection to the database broke", { cause });
  }
}

function asFailure(error: unknown): never {
  throw error instanceof ConnectionLoss ? databaseUnavailable(error.cause) : error;
}

/**
 * Opens the schema. If the connection breaks before the schema is open, the function starts again.
 *
 * @throws DeputeError DEPENDENCY_UNAVAILABLE when the database cannot be reached, or another process holds the schema's
 * lock; other errors of `open`
 */
async function untilOpen(
  open: () => Promise<StoreClient>,
  wasReached: () => boolean,
  { clock, timers, onError }: OpenSettings,
): Promise<StoreClient> {
  const beginMs = clock.monotonic();
  for (;;) {
    try {
      return await open();
    } catch (error) {
      if (!(error instanceof ConnectionLoss)) throw error;
      const { cause } = error;
      const isLate = isTimeout(cause) && clock.monotonic() - beginMs < LATE_START_MS;
      if (!(wasReached() || isStarting(cause) || isLate)) asFailure(error);
      onError(
        error,
        isLate
          ? "the database did not open a connection in time; trying again"
          : "the connection to the database broke while the store was opened; trying again",
      );
      await new Promise<void>((resolve) => timers.after(REOPEN_MS, resolve));
    }
  }
}
