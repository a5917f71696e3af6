import type { Client, QueryResult } from "pg";
import type { WriteConnection } from "../group-commit.ts";
import type { SqlValue } from "../store.ts";
import { databaseUnavailable, fromPostgresError } from "./errors.ts";
import { execute } from "./statements.ts";

/** Statements that leave everything as it was when they fail. */
const ONLY_READS = /^\s*(select|with|values)\b/i;
const WRITES = /\b(insert|update|delete)\b/i;

/**
 * The connection that writes. Statements are sent without waiting for the answer of those that only set marks; each that
 * may break a constraint has a mark of its own, since Postgres would give the whole transaction up otherwise.
 */
export class PostgresConnection implements WriteConnection {
  readonly dialect = "postgres";
  readonly #connect: () => Promise<Client>;
  #client: Client | undefined;
  #isInTransaction = false;
  #turn: Promise<unknown> = Promise.resolve();

  /** @param connect opens a connection in pipeline mode that has the right to write */
  constructor(connect: () => Promise<Client>) {
    this.#connect = connect;
  }

  get isInTransaction(): boolean {
    return this.#isInTransaction;
  }

  async begin(): Promise<void> {
    this.#client ??= this.#watch(await this.#connect());
    await this.#control("BEGIN");
    this.#isInTransaction = true;
  }

  async commit(): Promise<void> {
    const { command } = await this.#control("COMMIT");
    this.#isInTransaction = false;
    // A transaction that Postgres has given up ends with ROLLBACK, whatever it is told.
    if (command !== "COMMIT") throw databaseUnavailable(undefined, "the database has given a transaction up");
  }

  async rollback(): Promise<void> {
    this.#isInTransaction = false;
    await this.#control("ROLLBACK");
  }

  async savepoint(): Promise<void> {
    this.#send("SAVEPOINT fn");
  }

  async release(): Promise<void> {
    await this.#control("RELEASE SAVEPOINT fn");
  }

  async rollbackToSavepoint(): Promise<void> {
    // What a function has sent and did not wait for comes to its end first.
    await this.#turn;
    this.#send("ROLLBACK TO SAVEPOINT fn");
    await this.#control("RELEASE SAVEPOINT fn");
  }

  async all<T>(sql: string, params: readonly SqlValue[]): Promise<T[]> {
    return (await this.#execute(sql, params)).rows as T[];
  }

  async get<T>(sql: string, params: readonly SqlValue[]): Promise<T | undefined> {
    return (await this.#execute(sql, params)).rows[0] as T | undefined;
  }

  async run(sql: string, params: readonly SqlValue[]): Promise<{ changes: number }> {
    return { changes: (await this.#execute(sql, params)).rowCount ?? 0 };
  }

  async close(): Promise<void> {
    await this.#client?.end().catch(() => {});
    this.#client = undefined;
  }

  /** One at a time, or the marks of two statements would get mixed up. */
  #execute(sql: string, params: readonly SqlValue[]): Promise<QueryResult> {
    const result = this.#turn.then(() => this.#once(sql, params));
    this.#turn = result.catch(() => {});
    return result;
  }

  async #once(sql: string, params: readonly SqlValue[]): Promise<QueryResult> {
    const client = this.#open();
    if (ONLY_READS.test(sql) && !WRITES.test(sql)) {
      return execute(client, sql, params).catch((error) => Promise.reject(fromPostgresError(error)));
    }
    this.#send("SAVEPOINT statement");
    try {
      const result = await execute(client, sql, params);
      this.#send("RELEASE SAVEPOINT statement");
      return result;
    } catch (error) {
      this.#send("ROLLBACK TO SAVEPOINT statement");
      this.#send("RELEASE SAVEPOINT statement");
      throw fromPostgresError(error);
    }
  }

  /** Sends what sets or removes a mark. If it fails, what follows it does as well. */
  #send(sql: string): void {
    this.#client?.query(sql).catch(() => {});
  }

  async #control(sql: string): Promise<QueryResult> {
    try {
      return await this.#open().query(sql);
    } catch (error) {
      throw fromPostgresError(error);
    }
  }

  #open(): Client {
    if (this.#client === undefined) throw databaseUnavailable(undefined);
    return this.#client;
  }

  /** A connection that breaks takes its transaction along; the next transaction opens another. */
  #watch(client: Client): Client {
    const drop = () => {
      if (this.#client !== client) return;
      this.#client = undefined;
      this.#isInTransaction = false;
    };
    client.on("error", drop);
    client.on("end", drop);
    return client;
  }
}
