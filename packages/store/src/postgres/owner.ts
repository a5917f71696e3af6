import { systemTimers, type Timers } from "@depute/core";
import { StoreLostError } from "../errors.ts";
import type { StoreClient } from "./client.ts";
import { databaseUnavailable } from "./errors.ts";

/** Milliseconds between tries while another process still holds the schema: one that is ending, or one that died. */
const RETRY_MS = 250;
/** Tries before it is taken for one that goes on. */
const TRIES = 40;

const TABLE = "CREATE TABLE IF NOT EXISTS store_owner (one BIGINT PRIMARY KEY, generation BIGINT NOT NULL)";

/** A session of the database: its process, and when it began, because numbers of processes are used again. */
interface Session {
  readonly pid: number;
  readonly begin: string;
}

/**
 * Sees to it that one process at a time writes to a schema: its connection holds a lock that Postgres lets go of with the
 * connection. What a process remembers of its tables is right for as long as nobody else has held the lock in between, and
 * that a count of the holders tells.
 */
export class SchemaOwner {
  readonly #schema: string;
  readonly #timers: Timers;
  #generation: number | undefined;
  /** The session that held the lock for this process last. */
  #session: Session | undefined;

  constructor(schema: string, timers: Timers = systemTimers) {
    this.#schema = schema;
    this.#timers = timers;
  }

  /**
   * Takes the schema for a new connection, the first or one in place of a broken one.
   *
   * @param check called with the lock held, before anything in the schema is changed
   * @throws DeputeError DEPENDENCY_UNAVAILABLE when another process has it; StoreLostError when another has had it since;
   *   whatever `check` throws
   */
  async take(client: StoreClient, check: () => Promise<void>): Promise<void> {
    if (this.#generation === undefined) await client.query(`CREATE SCHEMA IF NOT EXISTS ${this.#schema}`);
    for (let left = TRIES; !(await this.#lock(client)); left--) {
      if (this.#generation !== undefined) await this.#assertSame(client);
      if (left === 0) throw databaseUnavailable(undefined, `another process uses the schema ${this.#schema}`);
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
      throw new StoreLostError(
        `another process has used the schema ${this.#schema} since; this one has to be started again`,
      );
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

  /** Where the network is cut, Postgres goes on with a session of ours for hours, and with its lock. */
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
