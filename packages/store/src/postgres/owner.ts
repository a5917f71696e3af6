import type { Timers } from "@depute/core";
import { DatabaseError } from "pg";
import { StoreLostError } from "../errors.ts";
import type { StoreClient } from "./client.ts";
import { databaseUnavailable } from "./errors.ts";
import { tryLock, unlock } from "./locks.ts";

/**
 * Milliseconds between attempts to take a lock that another process holds. The holder may be about to end, or the
 * holder's Postgres session may outlast the holder for some time.
 */
const RETRY_MS = 250;
/** Number of failed attempts after which the process gives up: the holder of the lock is then taken to be running. */
const TRIES = 40;

const TABLE = "CREATE TABLE IF NOT EXISTS store_owner (one BIGINT PRIMARY KEY, generation BIGINT NOT NULL)";

/** A Postgres session: the id and the start time of its server process, because process ids are reused. */
interface Session {
  readonly pid: number;
  readonly begin: string;
}

/**
 * Ensures that a schema is used either by a single process, or only by processes that share it. The connection that
 * writes holds a lock, which Postgres releases when the connection ends. Processes that share a schema hold the lock
 * together, so a process that needs the schema for itself cannot take the lock. After a reconnection, this process's
 * caches are valid only if no other process held the lock exclusively in the meantime. A counter in the schema, which
 * each exclusive holder raises, shows this.
 */
export class SchemaOwner {
  readonly #schema: string;
  readonly #timers: Timers;
  readonly #isShared: boolean;
  #generation: number | undefined;
  /** This process's last Postgres session that held the lock of the schema's owner. */
  #session: Session | undefined;

  constructor(schema: string, timers: Timers, isShared: boolean) {
    this.#schema = schema;
    this.#timers = timers;
    this.#isShared = isShared;
  }

  /**
   * Takes the schema's lock for a new connection: the first connection, or the replacement of a broken one. The first
   * connection to a shared schema also takes the lock `setup`; see `endSetup`.
   *
   * @param check called for the first connection, while this process holds the lock, before this process changes the
   * tables
   * @throws DeputeError DEPENDENCY_UNAVAILABLE when another process holds a lock; StoreLostError when another process
   * has held the exclusive lock since the last call, or the schema was removed; errors of `check`; node-postgres' own
   * errors
   */
  async take(client: StoreClient, check: () => Promise<void>): Promise<void> {
    if (this.#generation === undefined) {
      if (this.#isShared) await this.#beginSetup(client);
      await createSchema(client, this.#schema);
    }
    const mode = this.#isShared ? "shared" : "exclusive";
    for (
      let remainingTries = TRIES;
      !(await tryLock(client, "owner", this.#schema, mode));
      remainingTries--
    ) {
      if (this.#generation !== undefined) await this.#assertSame(client);
      if (remainingTries === 0)
        throw databaseUnavailable(
          undefined,
          `another process uses the schema ${this.#schema}; stop it or choose another schema`,
        );
      await this.#endOwnSession(client);
      await this.#waitForRetry();
    }
    await this.#noteSession(client);
    if (this.#generation !== undefined) return this.#assertSame(client);
    await check();
    await client.query(TABLE);
    const { rows } = await client.query<{ generation: number }>(
      `INSERT INTO store_owner (one, generation) VALUES (1, 1)
       ON CONFLICT (one) DO UPDATE SET generation = store_owner.generation + $1 RETURNING generation`,
      [this.#isShared ? 0 : 1],
    );
    this.#generation = rows[0]?.generation;
  }

  /**
   * Releases the lock `setup`, so that the next process can set up a shared schema. Call this method when the tables
   * are complete.
   */
  async endSetup(client: StoreClient): Promise<void> {
    if (this.#isShared) await unlock(client, "setup", this.#schema);
  }

  /** Waits until no other process sets up the schema, and takes the lock `setup`. */
  async #beginSetup(client: StoreClient): Promise<void> {
    for (let remainingTries = TRIES; !(await tryLock(client, "setup", this.#schema, "exclusive")); ) {
      if (remainingTries-- === 0)
        throw databaseUnavailable(
          undefined,
          `another process changes the tables of ${this.#schema}; start again when it is ready`,
        );
      await this.#waitForRetry();
    }
  }

  #waitForRetry(): Promise<void> {
    return new Promise((resolve) => void this.#timers.after(RETRY_MS, resolve));
  }

  async #assertSame(client: StoreClient): Promise<void> {
    const { rows } = await client
      .query<{ generation: number }>("SELECT generation FROM store_owner")
      .catch((error: { code?: string }) => {
        if (error.code !== UNDEFINED_TABLE) throw error;
        throw new StoreLostError(
          `the schema ${this.#schema} was removed from the database; restore it and restart this process`,
          error,
        );
      });
    if (rows[0]?.generation !== this.#generation) {
      throw new StoreLostError(
        `another process has used the schema ${this.#schema} in the meantime; restart this process`,
      );
    }
  }

  async #noteSession(client: StoreClient): Promise<void> {
    const { rows } = await client.query<Session>(
      "SELECT pid, backend_start::text AS begin FROM pg_stat_activity WHERE pid = pg_backend_pid()",
    );
    this.#session = rows[0];
  }

  /**
   * Ends this process's earlier Postgres session, because after a network cut Postgres keeps the session and its lock
   * for hours.
   */
  async #endOwnSession(client: StoreClient): Promise<void> {
    if (this.#session === undefined) return;
    const { pid, begin } = this.#session;
    await client.query(
      "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid = $1 AND backend_start::text = $2",
      [pid, begin],
    );
  }
}

const UNDEFINED_TABLE = "42P01";

/** The error code for a row whose key another row already has. */
const UNIQUE_VIOLATION = "23505";

/**
 * Creates a schema if it does not exist. If two processes create the schema at the same time, Postgres refuses one of
 * the two statements, and the function ignores this refusal.
 */
async function createSchema(client: StoreClient, schema: string): Promise<void> {
  try {
    await client.query(`CREATE SCHEMA IF NOT EXISTS ${schema}`);
  } catch (error) {
    if (!(error instanceof DatabaseError && error.code === UNIQUE_VIOLATION)) throw error;
  }
}
