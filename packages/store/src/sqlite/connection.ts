import { DatabaseSync, type StatementSync } from "node:sqlite";
import { DeputeError, ErrorReason } from "@depute/core";
import { ConstraintError, type ConstraintKind, isStoreFailure } from "../errors.ts";
import type { Cells } from "../row.ts";
import type { SqlValue } from "../store.ts";
import type { WriteConnection } from "../transaction.ts";

/** Converts a parameter for node:sqlite, which would bind every number as REAL and NaN as NULL. */
export function toSqlite(value: SqlValue): SqlValue {
  if (typeof value !== "number") return value;
  if (Number.isSafeInteger(value)) return BigInt(value);
  if (Number.isFinite(value)) return value;
  throw new TypeError(`${value} is not a SQL value; use text, bytes, null or a finite number`);
}

/**
 * Converts a row whose integers were read as bigints. An integer becomes a number if the number is exact. The function
 * changes the row in place.
 */
export function fromSqlite(row: Record<string, SqlValue>): Cells {
  for (const name in row) {
    const value = row[name];
    if (typeof value === "bigint") {
      const number = Number(value);
      if (Number.isSafeInteger(number)) row[name] = number;
    }
  }
  return row;
}

/** A primary result code of SQLite (sqlite.org/rescode.html), which is the low byte of `errcode`. */
const CONSTRAINT = 19;
/** BUSY, LOCKED, IOERR, FULL, CANTOPEN: the disk or another process's lock causes these errors, so a retry may help. */
const UNAVAILABLE = new Set([5, 6, 10, 13, 14]);

/** Extended result codes of violated constraints. */
const KINDS = new Map<number, ConstraintKind>([
  [275, "check"],
  [787, "foreign_key"],
  [1299, "not_null"],
  [1555, "unique"], // PRIMARYKEY
  [2067, "unique"],
  [2579, "unique"], // ROWID
]);

/** Converts an error of SQLite to an error of the store. Returns every other error unchanged. */
export function fromSqliteError(error: unknown): unknown {
  if (!(error instanceof Error) || !("errcode" in error) || typeof error.errcode !== "number") return error;
  const primary = error.errcode & 0xff;
  if (primary === CONSTRAINT) {
    return new ConstraintError(KINDS.get(error.errcode) ?? "other", error.message, { cause: error });
  }
  if (!UNAVAILABLE.has(primary)) return error;
  return new DeputeError(ErrorReason.DEPENDENCY_UNAVAILABLE, "the database does not answer", {
    metadata: { service: "store" },
    cause: error,
  });
}

/**
 * Maximum number of compiled statements per connection. The actual number is smaller, because statements are constants
 * in the code.
 */
const MAX_STATEMENTS = 500;
/** Maximum milliseconds to wait for another process's lock. The wait blocks the event loop. */
const BUSY_TIMEOUT_MS = 1_000;

/**
 * Statements that only the store may run. Within a transaction function, they would affect other functions of the
 * batch.
 */
const NOT_FOR_FUNCTIONS = /^\s*(begin|commit|end|rollback|savepoint|release|pragma|attach|detach|vacuum)\b/i;

export interface SqliteConnectionOptions {
  readonly readOnly: boolean;
  /** Receives each failure of the disk, and each failure that another process's lock causes. */
  readonly onFailure?: (error: DeputeError) => void;
}

/**
 * One connection of node:sqlite. Its statements run synchronously; its methods return promises only because the
 * interface requires them.
 */
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

  all(sql: string, params: readonly SqlValue[] = []): Cells[] {
    const rows = this.#do(sql, (statement) => statement.all(...params.map(toSqlite)));
    return rows.map(fromSqlite);
  }

  get(sql: string, params: readonly SqlValue[] = []): Cells | undefined {
    const row = this.#do(sql, (statement) => statement.get(...params.map(toSqlite)));
    return row && fromSqlite(row);
  }

  run(sql: string, params: readonly SqlValue[] = []): { changes: number } {
    const { changes } = this.#do(sql, (statement) => statement.run(...params.map(toSqlite)));
    return { changes: Number(changes) };
  }

  /** Runs any statements, including PRAGMA settings and transaction control. */
  exec(sql: string): void {
    try {
      this.#database.exec(sql);
    } catch (error) {
      throw this.#failed(error);
    }
  }

  /** Returns the numeric value of a setting or a counter of the database. */
  pragma(name: "auto_vacuum" | "freelist_count" | "page_count"): number {
    return Number(this.#prepared(`PRAGMA ${name}`).get()?.[name] ?? 0);
  }

  beginRead(): void {
    this.#control("BEGIN");
  }

  endRead(): void {
    if (this.isInTransaction) this.#control("COMMIT");
  }

  async begin(): Promise<void> {
    // IMMEDIATE takes the write lock at once. If the transaction took the lock later, it could fail after it has
    // already read.
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
    try {
      this.#prepared(sql).run();
    } catch (error) {
      throw this.#failed(error);
    }
  }

  #prepared(sql: string): StatementSync {
    let statement = this.#controls.get(sql);
    if (statement === undefined) {
      statement = this.#database.prepare(sql);
      this.#controls.set(sql, statement);
    }
    return statement;
  }

  #do<T>(sql: string, use: (statement: StatementSync) => T): T {
    try {
      return use(this.#statements.get(sql) ?? this.#compile(sql));
    } catch (error) {
      throw this.#failed(error);
    }
  }

  #compile(sql: string): StatementSync {
    if (NOT_FOR_FUNCTIONS.test(sql))
      throw new Error(
        `a transaction function must not run the statement ${sql}; use tx.all, tx.get or tx.run with a query`,
      );
    const statement = this.#database.prepare(sql);
    // Refuses a text with several statements, because SQLite would compile the first statement and silently
    // ignore the others.
    if (sql.slice(statement.sourceSQL.length).trim() !== "")
      throw new Error(`the text has more than one statement: ${sql}; run each statement separately`);
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
