import { existsSync } from "node:fs";
import { DatabaseSync } from "node:sqlite";
import { fromSqlite, fromSqliteError } from "./connection.ts";

/**
 * Reads the applied migrations of a file, which other processes may use.
 *
 * @param sql the statement that reads the rows of the applied migrations
 * @returns undefined if the file or its table of migrations does not exist; the error of the query if the query fails
 * @throws DeputeError DEPENDENCY_UNAVAILABLE; errors of SQLite for a damaged file
 */
export function readAppliedInFile(file: string, sql: string): readonly object[] | Error | undefined {
  if (!existsSync(file)) return undefined;
  let database: DatabaseSync | undefined;
  try {
    database = new DatabaseSync(file, { readOnly: true, timeout: 5_000, readBigInts: true });
    const tables = database.prepare("SELECT name FROM sqlite_schema WHERE type = 'table'").all();
    if (!tables.some(({ name }) => name === "schema_migrations")) return undefined;
    try {
      return database
        .prepare(sql)
        .all()
        .map((cells) => fromSqlite(cells));
    } catch (error) {
      return error as Error;
    }
  } catch (error) {
    throw fromSqliteError(error);
  } finally {
    database?.close();
  }
}
