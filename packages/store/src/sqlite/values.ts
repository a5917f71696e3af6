import type { SqlValue } from "../store.ts";

/** What node:sqlite binds. It would bind every number as REAL, and NaN as NULL. */
export function toSqlite(value: SqlValue): SqlValue {
  if (typeof value !== "number") return value;
  if (Number.isSafeInteger(value)) return BigInt(value);
  if (Number.isFinite(value)) return value;
  throw new TypeError(`${value} is no SQL value`);
}

/** A row that was read with bigints: integers become numbers where that is exact. Changes the row itself. */
export function fromSqlite<T>(row: Record<string, SqlValue>): T {
  for (const name in row) {
    const value = row[name];
    if (typeof value === "bigint") {
      const number = Number(value);
      if (Number.isSafeInteger(number)) row[name] = number;
    }
  }
  return row as T;
}
