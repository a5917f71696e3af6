import type { ClientBase, QueryResult } from "pg";
import type { SqlValue } from "../store.ts";
import type { Executor } from "../transaction.ts";
import { toPostgres } from "./dialect.ts";
import { fromPostgresError } from "./errors.ts";
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

/** One statement by its name, so that a connection has it planned after the first time. */
export async function execute(
  client: ClientBase,
  sql: string,
  params: readonly SqlValue[],
): Promise<QueryResult> {
  const { name, text } = prepare(sql);
  const values = params.map(toPostgresValue);
  // The extended protocol refuses several statements in one text.
  const query = { ...(name !== undefined && { name }), text, values, queryMode: "extended" };
  return client.query(query);
}

/** The statements of a transaction that only reads. */
export function reading(client: ClientBase): Executor {
  const all = async <T>(sql: string, params: readonly SqlValue[]): Promise<T[]> => {
    try {
      return (await execute(client, sql, params)).rows as T[];
    } catch (error) {
      throw fromPostgresError(error);
    }
  };
  return {
    dialect: "postgres",
    all,
    get: async <T>(sql: string, params: readonly SqlValue[]) => (await all<T>(sql, params))[0],
    run: async (sql, params) => ({ changes: (await all(sql, params)).length }),
  };
}
