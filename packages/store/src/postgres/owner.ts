import type { Timers } from "@depute/core";
import { StoreLostError } from "../errors.ts";
import type { StoreClient } from "./client.ts";
import { databaseUnavailable } from "./errors.ts";

/**
 * Milliseconds between attempts to take the lock while another process holds it. That process may be about to end, or
 * already dead.
 */
const RETRY_MS = 250;
/** Number of failed attempts after which the other process counts as running. */
const TRIES = 40;

const TABLE = "CREATE TABLE IF NOT EXISTS store_owner (one BIGINT PRIMARY KEY, generation BIGINT NOT NULL)";

/** A session of the database: its process id and start time, because process ids are reused. */
interface Session {
  readonly pid: number;
  readonly begin: string;
}

/**
 * Ensures that only one process at a time writes to a schema. The owner's connection holds a lock, which Postgres frees
 * when the connection ends. After a reconnection, this process's caches of the tables are valid only if no other
 * process held the lock in between. A counter of lock holders shows that.
 */
export class SchemaOwner {
  readonly #schema: string;
  readonly #timers: Timers;
  #generation: number | undefined;
  /** This process's last Postgres session that held the lock of the schema's owner. */
  #session: Session | undefined;

  constructor(schema: string, timers: Timers) {
    this.#schema = schema;
    this.#timers = timers;
  }

  /**
   * Takes the schema's lock for a new connection, which is the first one or replaces a broken one.
   *
   * @param check called while the lock is held, before anything in the schema is changed
   * @throws DeputeError DEPENDENCY_UNAVAILABLE when another process holds the lock; StoreLostError when another process
   *   has held it since the last time; errors of `check`
   */
  async take(client: StoreClient, check: () => Promise<void>): Promise<void> {
    if (this.#generation === undefined) await client.query(`CREATE SCHEMA IF NOT EXISTS ${this.#schema}`);
    for (let remainingTries = TRIES; !(await this.#lock(client)); remainingTries--) {
      if (this.#generation !== undefined) await this.#assertSame(client);
      if (remainingTries === 0)
        throw databaseUnavailable(
          undefined,
          `another process uses the schema ${this.#schema}; stop it or choose another schema`,
        );
      await this.#endOwnSession(client);
      await new Promise<void>((resolve) => this.#timers.after(RETRY_MS, resolve));
    }
    await this.#noteSession(client);
    if (this.#generation !== undefined) return this.#assertSame(client);
    await check();
    await client.query(TABLE);
    const { rows } = await client.query<{ generation: number }>(
      `INSERT INTO store_owner (one, generation) VALUES (1, 1)
       ON CONFLICT (one) DO UPDATE SET generation = store_owner.generation + 1 RETURNING generation`,
    );
    this.#generation = rows[0]?.generation;
  }

  async #assertSame(client: StoreClient): Promise<void> {
    const { rows } = await client
      .query<{ generation: number }>("SELECT generation FROM store_owner")
      .catch((error: { code?: string }) => {
        if (error.code !== UNDEFINED_TABLE) throw error;
        throw new StoreLostError(`the schema ${this.#schema} of the database is gone`, error);
      });
    if (rows[0]?.generation !== this.#generation) {
      throw new StoreLostError(`another process has used the schema ${this.#schema} since; restart this one`);
    }
  }

  async #lock(client: StoreClient): Promise<boolean> {
    const { rows } = await client.query<{ held: number }>(
      "SELECT pg_try_advisory_lock(hashtextextended('depute ' || current_database() || ' ' || $1, 0)) AS held",
      [this.#schema],
    );
    return rows[0]?.held === 1;
  }

  async #noteSession(client: StoreClient): Promise<void> {
    const { rows } = await client.query<Session>(
      "SELECT pid, backend_start::text AS begin FROM pg_stat_activity WHERE pid = pg_backend_pid()",
    );
    this.#session = rows[0];
  }

  /**
   * Ends this process's earlier session, because after a network cut Postgres keeps the session and its lock for hours.
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
