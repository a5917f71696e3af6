import type { QueryResult } from "pg";
import { UnknownCommitError } from "../errors.ts";
import type { SqlValue } from "../store.ts";
import type { WriteConnection } from "../transaction.ts";
import type { StoreClient } from "./client.ts";
import { databaseUnavailable, endsConnection, fromPostgresError } from "./errors.ts";
import { mayWrite, toQuery } from "./statements.ts";
import type { Turns } from "./turns.ts";

const TRANSACTION_ID = "SELECT txid_current()::text AS id";

export interface PostgresConnectionOptions {
  /** Opens a connection that may write, in pipeline mode. */
  readonly connect: () => Promise<StoreClient>;
  /** An open connection to use first. */
  readonly first: StoreClient;
  /** Called when the connection breaks, in any state. */
  readonly onBreak: () => void;
  /** The turns of a shared schema. Undefined if only this process uses the schema. */
  readonly turns?: Turns | undefined;
}

/**
 * The connection that writes. Savepoint statements are sent without waiting for their answers. Statements have no
 * savepoints of their own, because a failed statement ends its function (see `Transaction`). A savepoint for each
 * statement would cost two more messages and a subtransaction.
 */
export class PostgresConnection implements WriteConnection {
  readonly dialect = "postgres";
  readonly #options: PostgresConnectionOptions;
  #client: StoreClient | undefined;
  #isInTransaction = false;
  /** The id of the current transaction. */
  #transactionId = "";
  #waiting = 0;
  #hasWritten = false;
  /** The number of the current savepoint. A transaction begins with 0. */
  #savepoint = 0;

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

  destroy(): void {
    if (this.#client !== undefined) this.#drop(this.#client);
  }

  async begin(): Promise<void> {
    if (this.#client === undefined) this.#adopt(await this.#options.connect());
    this.#hasWritten = false;
    this.#savepoint = 0;
    const { turns } = this.#options;
    const statements = ["BEGIN", ...(turns === undefined ? [] : [turns.begin()]), TRANSACTION_ID];
    // If a statement after BEGIN fails, the transaction is open, so the caller must roll it back.
    this.#isInTransaction = true;
    // node-postgres returns one result for each statement of a query.
    const results = (await this.#control(statements.join("; "))) as unknown as readonly QueryResult[];
    this.#transactionId = String(results.at(-1)?.rows[0]?.id);
    turns?.begun(results.at(-2)?.rows[0]);
  }

  async commit(): Promise<void> {
    const id = this.#transactionId;
    const { turns } = this.#options;
    const raising = this.#hasWritten ? turns?.raise() : undefined;
    let command: string | undefined;
    try {
      command = lastCommand(await this.#query(raising === undefined ? "COMMIT" : `${raising}; COMMIT`));
    } catch (error) {
      if (endsConnection(error)) throw new UnknownCommitError(() => this.#hasCommitted(id), error);
      throw fromPostgresError(error);
    }
    this.#isInTransaction = false;
    // For an aborted transaction, Postgres answers COMMIT with ROLLBACK.
    if (command !== "COMMIT")
      throw databaseUnavailable(undefined, "the database aborted a transaction; call again");
    if (this.#hasWritten) turns?.committed();
  }

  async rollback(): Promise<void> {
    this.#isInTransaction = false;
    await this.#control("ROLLBACK");
  }

  async savepoint(): Promise<void> {
    // Each savepoint has its own name. If a RELEASE fails, a later rollback must not find the savepoint of an earlier
    // function, whose result already counts.
    this.#savepoint++;
    this.#send(`SAVEPOINT fn${this.#savepoint}`);
  }

  async release(): Promise<void> {
    this.#send(`RELEASE SAVEPOINT fn${this.#savepoint}`);
  }

  async rollbackToSavepoint(): Promise<void> {
    this.#send(`ROLLBACK TO SAVEPOINT fn${this.#savepoint}`);
    await this.#control(`RELEASE SAVEPOINT fn${this.#savepoint}`);
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

  /** Sends a statement of a transaction function. Postgres runs the statements in the order in which they are sent. */
  async #execute(sql: string, params: readonly SqlValue[]): Promise<QueryResult> {
    const query = toQuery(sql, params);
    if (mayWrite(sql)) this.#hasWritten = true;
    try {
      return await this.#query(query);
    } catch (error) {
      throw fromPostgresError(error);
    }
  }

  /**
   * Sends a statement that sets or removes a savepoint, without waiting. The method ignores an error of the statement,
   * because later statements then fail as well.
   */
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

  /** Sends a query. Rejects with node-postgres' own error. */
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
   * Whether a transaction of an earlier, broken connection committed. The current connection holds the schema's lock,
   * or the turn in a shared schema. Postgres granted this lock or turn only after that transaction had ended, so
   * Postgres has a definite answer.
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

  /** Discards a broken connection and its transaction. The next transaction opens another connection. */
  #drop(client: StoreClient): void {
    if (this.#client !== client) return;
    this.#client = undefined;
    this.#isInTransaction = false;
    client.destroy();
    this.#options.onBreak();
  }
}

/** Returns the command tag of the last statement in a query. node-postgres returns one result for each statement. */
function lastCommand(answer: QueryResult | readonly QueryResult[]): string | undefined {
  return Array.isArray(answer) ? answer.at(-1)?.command : (answer as QueryResult).command;
}
