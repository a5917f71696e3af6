import { Client, DatabaseError, escapeIdentifier } from "pg";
import { fromPostgresError } from "./errors.ts";

/** Error codes of Postgres for a missing schema or table. */
const MISSING = new Set(["3F000", "42P01"]);

/**
 * Reads the applied migrations of a schema, which other processes may use.
 *
 * @param sql the statement that reads the rows of the applied migrations
 * @returns undefined if the schema or its table of migrations does not exist; the error of the query if that table
 * lacks a column
 * @throws DeputeError DEPENDENCY_UNAVAILABLE; other errors of Postgres
 */
export async function readAppliedInSchema(
  url: string,
  schema: string,
  sql: string,
): Promise<readonly object[] | Error | undefined> {
  const client = new Client({ connectionString: url });
  try {
    await client.connect();
    await client.query(`SET search_path TO ${escapeIdentifier(schema)}`);
    const { rows } = await client.query<Record<string, unknown>>(sql);
    return rows.map((cells) => ({ ...cells, id: Number(cells.id) }));
  } catch (error) {
    if (!(error instanceof DatabaseError)) throw fromPostgresError(error);
    if (MISSING.has(error.code ?? "")) return undefined;
    if (error.code === "42703") return error;
    throw fromPostgresError(error);
  } finally {
    await client.end().catch(() => {});
  }
}
