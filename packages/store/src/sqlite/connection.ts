import { DatabaseSync, type StatementSync } from "node:sqlite";
import type { DeputeError } from "@depute/core";
import { isStoreFailure } from "../errors.ts";
import type { SqlValue } from "../store.ts";
import type { WriteConnection } from "../transaction.ts";
import { fromSqliteError } from "./errors.ts";
import { fromSqlite, toSqlite } from "./values.ts";

/** Statements kept compiled for each connection. Theirs are texts in the code, so they are fewer than this. */
const MAX_STATEMENTS = 500;
/** How long to wait for a lock of another process. Waiting blocks the event loop. */
const BUSY_TIMEOUT_MS = 1_000;

/** The store runs these itself; within a function they would reach into other functions' work. */
const NOT_FOR_FUNCTIONS = /^\s*(begin|commit|end|rollback|savepoint|release|pragma|attach|detach|vacuum)\b/i;

export interface SqliteConnectionOptions {
  readonly readOnly: boolean;
  /** Told of each failure of the disk, or of a lock that another process holds. */
  readonly onFailure?: (error: DeputeError) => void;
}

/** One connection of node:sqlite, which answers at once: its promises only keep the shape of the interface. */
export class SqliteConnection implements WriteConnection {
  readonly dialect = "sqlite";
  readonly #database: DatabaseSync;
  readonly #statements = new Map<string, StatementSync>();
  readonly #controls = new Map<string, StatementSync>();
  readonly #onFailure: (error: DeputeError) => void;

  constructor(path: string, options: SqliteConnectionOptions) {
    this.#onFailure = options.onFailure ?? (() => {});
    this.#database = new DatabaseSync(path, {
      readOnly: options.readOnly,
      timeout: BUSY_TIMEOUT_MS,
      enableForeignKeyConstraints: true,
      readBigInts: true,
    });
  }

  get isInTransaction(): boolean {
    return this.#database.isTransaction;
  }

  all<T>(sql: string, params: readonly SqlValue[] = []): T[] {
    const rows = this.#do(sql, (statement) => statement.all(...params.map(toSqlite)));
    return rows.map((row) => fromSqlite<T>(row));
  }

  get<T>(sql: string, params: readonly SqlValue[] = []): T | undefined {
    const row = this.#do(sql, (statement) => statement.get(...params.map(toSqlite)));
    return row === undefined ? undefined : fromSqlite<T>(row);
  }

  run(sql: string, params: readonly SqlValue[] = []): { changes: number } {
    const { changes } = this.#do(sql, (statement) => statement.run(...params.map(toSqlite)));
    return { changes: Number(changes) };
  }

  /** Any statements, settings and transaction control included. */
  exec(sql: string): void {
    try {
      this.#database.exec(sql);
    } catch (error) {
      throw this.#failed(error);
    }
  }

  beginRead(): void {
    this.#control("BEGIN");
  }

  endRead(): void {
    if (this.isInTransaction) this.#control("COMMIT");
  }

  async begin(): Promise<void> {
    // Takes the write lock now: a later upgrade could fail half way.
    this.#control("BEGIN IMMEDIATE");
  }

  async commit(): Promise<void> {
    this.#control("COMMIT");
  }

  async rollback(): Promise<void> {
    this.#control("ROLLBACK");
  }

  async savepoint(): Promise<void> {
    this.#control("SAVEPOINT fn");
  }

  async release(): Promise<void> {
    this.#control("RELEASE fn");
  }

  async rollbackToSavepoint(): Promise<void> {
    this.#control("ROLLBACK TO fn");
    this.#control("RELEASE fn");
  }

  close(): void {
    this.#statements.clear();
    this.#controls.clear();
    this.#database.close();
  }

  #failed(error: unknown): unknown {
    const failure = fromSqliteError(error);
    if (isStoreFailure(failure)) this.#onFailure(failure);
    return failure;
  }

  #control(sql: string): void {
    let statement = this.#controls.get(sql);
    try {
      if (statement === undefined) {
        statement = this.#database.prepare(sql);
        this.#controls.set(sql, statement);
      }
      statement.run();
    } catch (error) {
      throw this.#failed(error);
    }
  }

  #do<T>(sql: string, use: (statement: StatementSync) => T): T {
    try {
      return use(this.#statements.get(sql) ?? this.#compile(sql));
    } catch (error) {
      throw this.#failed(error);
    }
  }

  #compile(sql: string): StatementSync {
    if (NOT_FOR_FUNCTIONS.test(sql)) throw new Error(`not a statement for a transaction function: ${sql}`);
    const statement = this.#database.prepare(sql);
    // SQLite compiles the first statement and passes over the rest without a word.
    if (sql.slice(statement.sourceSQL.length).trim() !== "")
      throw new Error(`more than one statement: ${sql}`);
    if (this.#statements.size >= MAX_STATEMENTS) {
      for (const oldest of this.#statements.keys()) {
        this.#statements.delete(oldest);
        break;
      }
    }
    this.#statements.set(sql, statement);
    return statement;
  }
}
