import type { QueryResult } from "pg";
import { UnknownCommitError } from "../errors.ts";
import type { SqlValue } from "../store.ts";
import type { WriteConnection } from "../transaction.ts";
import type { StoreClient } from "./client.ts";
import { databaseUnavailable, endsConnection, fromPostgresError } from "./errors.ts";
import { toQuery } from "./statements.ts";

/** Statements that leave everything as it was when they fail. */
const ONLY_READS = /^\s*(select|with|values)\b/i;
const WRITES = /\b(insert|update|delete)\b/i;

export interface PostgresConnectionOptions {
  /** Opens a connection in pipeline mode that has the right to write. */
  readonly connect: () => Promise<StoreClient>;
  /** The first such connection. */
  readonly first: StoreClient;
  /** Told when the connection breaks, whatever its state. */
  readonly onBreak: () => void;
}

/**
 * The connection that writes. Statements are sent without waiting for the answer of those that only set marks; each that
 * may break a constraint has a mark of its own, since Postgres would give the whole transaction up otherwise.
 */
export class PostgresConnection implements WriteConnection {
  readonly dialect = "postgres";
  readonly #options: PostgresConnectionOptions;
  #client: StoreClient | undefined;
  #isInTransaction = false;
  /** The id of the transaction that is under way. */
  #transactionId: Promise<string> = Promise.resolve("");
  #turn: Promise<unknown> = Promise.resolve();
  #waiting = 0;

  constructor(options: PostgresConnectionOptions) {
    this.#options = options;
    this.#adopt(options.first);
  }

  get isInTransaction(): boolean {
    return this.#isInTransaction;
  }

  get isWaiting(): boolean {
    return this.#waiting > 0;
  }

  giveUp(): void {
    if (this.#client !== undefined) this.#drop(this.#client);
  }

  async begin(): Promise<void> {
    if (this.#client === undefined) this.#adopt(await this.#options.connect());
    const begun = this.#control("BEGIN");
    // Sent along, so that it costs no round trip of its own.
    this.#transactionId = this.#control("SELECT txid_current()::text AS id").then(({ rows }) => rows[0].id);
    this.#transactionId.catch(() => {});
    await begun;
    this.#isInTransaction = true;
  }

  async commit(): Promise<void> {
    const id = await this.#transactionId;
    let command: string;
    try {
      ({ command } = await this.#query("COMMIT"));
    } catch (error) {
      if (endsConnection(error)) throw new UnknownCommitError(() => this.#hasCommitted(id), error);
      throw fromPostgresError(error);
    }
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
    const client = this.#client;
    this.#client = undefined;
    if (client === undefined || client.isBroken) return;
    await client.end().catch(() => {});
  }

  /** One at a time, or the marks of two statements would get mixed up. */
  #execute(sql: string, params: readonly SqlValue[]): Promise<QueryResult> {
    const result = this.#turn.then(() => this.#once(sql, params));
    this.#turn = result.catch(() => {});
    return result;
  }

  async #once(sql: string, params: readonly SqlValue[]): Promise<QueryResult> {
    const query = toQuery(sql, params);
    this.#open();
    const onlyReads = ONLY_READS.test(sql) && !WRITES.test(sql);
    if (!onlyReads) this.#send("SAVEPOINT statement");
    try {
      const result = await this.#query(query);
      if (!onlyReads) this.#send("RELEASE SAVEPOINT statement");
      return result;
    } catch (error) {
      if (!onlyReads && this.#client !== undefined) {
        this.#send("ROLLBACK TO SAVEPOINT statement");
        this.#send("RELEASE SAVEPOINT statement");
      }
      throw fromPostgresError(error);
    }
  }

  /** Sends what sets or removes a mark. If it fails, what follows it does as well. */
  #send(sql: string): void {
    this.#client?.query(sql).catch(() => {});
  }

  async #control(sql: string): Promise<QueryResult> {
    try {
      return await this.#query(sql);
    } catch (error) {
      throw fromPostgresError(error);
    }
  }

  /** Rejects with node-postgres' own error. */
  async #query(query: string | ReturnType<typeof toQuery>): Promise<QueryResult> {
    const client = this.#open();
    this.#waiting++;
    try {
      return await client.query(query as string);
    } catch (error) {
      if (endsConnection(error)) this.#drop(client);
      throw error;
    } finally {
      this.#waiting--;
    }
  }

  #open(): StoreClient {
    if (this.#client === undefined) throw databaseUnavailable(undefined);
    return this.#client;
  }

  /**
   * Whether a transaction of a connection that is gone committed. Its session has ended, because this one holds the lock
   * of the schema, so Postgres knows.
   */
  async #hasCommitted(id: string): Promise<boolean> {
    const { rows } = await this.#control(`SELECT txid_status(${BigInt(id)}) AS status`);
    return rows[0]?.status === "committed";
  }

  #adopt(client: StoreClient): void {
    if (client.isBroken) throw databaseUnavailable(undefined);
    this.#client = client;
    client.on("error", () => this.#drop(client));
    client.on("end", () => this.#drop(client));
  }

  /** A connection that breaks takes its transaction along; the next transaction opens another. */
  #drop(client: StoreClient): void {
    if (this.#client !== client) return;
    this.#client = undefined;
    this.#isInTransaction = false;
    client.destroy();
    this.#options.onBreak();
  }
}
