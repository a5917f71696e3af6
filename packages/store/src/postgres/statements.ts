import type { QueryConfig } from "pg";
import type { SqlValue } from "../store.ts";
import type { Executor } from "../transaction.ts";
import type { StoreClient } from "./client.ts";
import { toPostgres } from "./dialect.ts";
import { endsConnection, fromPostgresError } from "./errors.ts";
import { toPostgresValue } from "./values.ts";

/** Statements kept prepared for each connection. Theirs are texts in the code, so they are fewer than this. */
const MAX_STATEMENTS = 500;

/** The store runs these itself; within a function they would reach into other functions' work. */
const NOT_FOR_FUNCTIONS =
  /^\s*(begin|start|commit|end|abort|rollback|savepoint|release|prepare|set|reset)\b/i;

interface Prepared {
  readonly name: string | undefined;
  readonly text: string;
}

const prepared = new Map<string, Prepared>();

function prepare(sql: string): Prepared {
  const known = prepared.get(sql);
  if (known !== undefined) return known;
  if (NOT_FOR_FUNCTIONS.test(sql)) throw new Error(`not a statement for a transaction function: ${sql}`);
  const text = toPostgres(sql);
  if (prepared.size >= MAX_STATEMENTS) return { name: undefined, text };
  const made = { name: `s${prepared.size}`, text };
  prepared.set(sql, made);
  return made;
}

/**
 * One statement by its name, so that a connection has it planned after the first time.
 *
 * @throws Error for what is no statement of a function, TypeError for what is no SQL value; at once
 */
export function toQuery(sql: string, params: readonly SqlValue[]): QueryConfig {
  const { name, text } = prepare(sql);
  const values = params.map(toPostgresValue);
  // The extended protocol refuses several statements in one text.
  return { ...(name !== undefined && { name }), text, values, queryMode: "extended" } as QueryConfig;
}

/** The statements of a transaction that only reads. */
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

  giveUp(): void {
    this.#client.destroy();
  }

  async all<T>(sql: string, params: readonly SqlValue[]): Promise<T[]> {
    const query = toQuery(sql, params);
    this.#waiting++;
    try {
      return (await this.#client.query(query)).rows as T[];
    } catch (error) {
      if (endsConnection(error)) this.#client.destroy();
      throw fromPostgresError(error);
    } finally {
      this.#waiting--;
    }
  }

  async get<T>(sql: string, params: readonly SqlValue[]): Promise<T | undefined> {
    return (await this.all<T>(sql, params))[0];
  }

  async run(sql: string, params: readonly SqlValue[]): Promise<{ changes: number }> {
    return { changes: (await this.all(sql, params)).length };
  }
}
