import { systemTimers, type Timers } from "@depute/core";
import type { Client } from "pg";
import { databaseUnavailable } from "./errors.ts";

/** Milliseconds between tries while another process still holds the schema: one that is ending, or one that died. */
const RETRY_MS = 250;
/** Tries before it is taken for one that goes on. */
const TRIES = 40;

const TABLE = "CREATE TABLE IF NOT EXISTS store_owner (one BIGINT PRIMARY KEY, generation BIGINT NOT NULL)";

/**
 * Sees to it that one process at a time writes to a schema: its connection holds a lock that Postgres lets go of with the
 * connection. What a process remembers of its tables is right for as long as nobody else has held the lock in between, and
 * that a count of the holders tells.
 */
export class SchemaOwner {
  readonly #schema: string;
  readonly #timers: Timers;
  #generation: number | undefined;

  constructor(schema: string, timers: Timers = systemTimers) {
    this.#schema = schema;
    this.#timers = timers;
  }

  /**
   * Takes the schema for a new connection, the first or one in place of a broken one.
   *
   * @throws DeputeError DEPENDENCY_UNAVAILABLE when another process has it, or has had it since
   */
  async take(client: Client): Promise<void> {
    await client.query(`CREATE SCHEMA IF NOT EXISTS ${this.#schema}`);
    for (let left = TRIES; !(await this.#lock(client)); left--) {
      if (left === 0) throw databaseUnavailable(undefined, `another process uses the schema ${this.#schema}`);
      await new Promise<void>((resolve) => this.#timers.after(RETRY_MS, resolve));
    }
    await client.query(TABLE);
    if (this.#generation === undefined) {
      const { rows } = await client.query<{ generation: number }>(
        `INSERT INTO store_owner (one, generation) VALUES (1, 1)
         ON CONFLICT (one) DO UPDATE SET generation = store_owner.generation + 1 RETURNING generation`,
      );
      this.#generation = rows[0]?.generation;
      return;
    }
    const { rows } = await client.query<{ generation: number }>("SELECT generation FROM store_owner");
    if (rows[0]?.generation !== this.#generation) {
      throw databaseUnavailable(undefined, `another process has used the schema ${this.#schema} since`);
    }
  }

  async #lock(client: Client): Promise<boolean> {
    const { rows } = await client.query<{ held: number }>(
      "SELECT pg_try_advisory_lock(hashtextextended('depute ' || current_database() || ' ' || $1, 0)) AS held",
      [this.#schema],
    );
    return rows[0]?.held === 1;
  }
}
