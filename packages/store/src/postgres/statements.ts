import type { QueryConfig } from "pg";
import type { Cells } from "../row.ts";
import type { SqlValue } from "../store.ts";
import type { Executor } from "../transaction.ts";
import type { StoreClient } from "./client.ts";
import { toPostgres } from "./dialect.ts";
import { endsConnection, fromPostgresError } from "./errors.ts";
import { toPostgresValue } from "./values.ts";

/**
 * Maximum number of prepared statements per connection. The actual number is smaller, because statements are constants
 * in the code.
 */
const MAX_STATEMENTS = 500;

/**
 * Statements that only the store may run. Within a transaction function, they would affect other functions of the
 * batch.
 */
const NOT_FOR_FUNCTIONS =
  /^\s*(begin|start|commit|end|abort|rollback|savepoint|release|prepare|set|reset)\b/i;

/**
 * A statement only reads if it matches ONLY_READS and does not match WRITES. A batch that only reads does not raise the
 * version of a shared schema.
 */
const ONLY_READS = /^\s*(select|with|values)\b/i;
const WRITES = /\b(insert|update|delete)\b/i;

interface Prepared {
  readonly name: string | undefined;
  readonly text: string;
  /** Whether the statement may change rows. */
  readonly mayWrite: boolean;
}

const prepared = new Map<string, Prepared>();

function prepare(sql: string): Prepared {
  const preparedName = prepared.get(sql);
  if (preparedName !== undefined) return preparedName;
  if (NOT_FOR_FUNCTIONS.test(sql))
    throw new Error(
      `a transaction function must not run the statement ${sql}; use tx.all, tx.get or tx.run with a query`,
    );
  const text = toPostgres(sql);
  const mayWrite = !ONLY_READS.test(sql) || WRITES.test(sql);
  if (prepared.size >= MAX_STATEMENTS) return { name: undefined, text, mayWrite };
  const namedStatement = { name: `s${prepared.size}`, text, mayWrite };
  prepared.set(sql, namedStatement);
  return namedStatement;
}

/**
 * Returns a named statement, so that each connection plans the statement only once. Beyond {@link MAX_STATEMENTS}, a
 * statement has no name.
 *
 * @throws synchronously: Error for a statement that functions may not run, TypeError for an invalid SQL value
 */
export function toQuery(sql: string, params: readonly SqlValue[]): QueryConfig {
  const { name, text } = prepare(sql);
  const values = params.map(toPostgresValue);
  // The extended protocol is used because it refuses several statements in one text.
  return { ...(name !== undefined && { name }), text, values, queryMode: "extended" } as QueryConfig;
}

/** Whether a statement may change rows. */
export function mayWrite(sql: string): boolean {
  return prepare(sql).mayWrite;
}

/** Runs the statements of a read-only transaction on one connection. */
export class ReadStatements implements Executor {
  readonly dialect = "postgres";
  readonly #client: StoreClient;
  #waiting = 0;

  constructor(client: StoreClient) {
    this.#client = client;
  }

  get isWaiting(): boolean {
    return this.#waiting > 0;
  }

  destroy(): void {
    this.#client.destroy();
  }

  async all(sql: string, params: readonly SqlValue[]): Promise<Cells[]> {
    const query = toQuery(sql, params);
    this.#waiting++;
    try {
      return (await this.#client.query<Cells>(query)).rows;
    } catch (error) {
      if (endsConnection(error)) this.#client.destroy();
      throw fromPostgresError(error);
    } finally {
      this.#waiting--;
    }
  }

  async get(sql: string, params: readonly SqlValue[]): Promise<Cells | undefined> {
    return (await this.all(sql, params))[0];
  }

  async run(sql: string, params: readonly SqlValue[]): Promise<{ changes: number }> {
    return { changes: (await this.all(sql, params)).length };
  }
}
