import type { SqlValue } from "./sql-value.ts";

/** What a column holds. */
export interface Column<T> {
  /** In words, for the error. */
  readonly what: string;
  readonly holds: (value: SqlValue | undefined) => boolean;
  /** Never set. It carries the type, so that a column of some words is none of more words. */
  readonly type?: (value: T) => T;
}

/** The columns of a statement's rows. Declare it once, beside the table. */
export interface Row<T> {
  /**
   * Checks each column, and returns the same object with its type.
   *
   * @throws TypeError when a column is missing or holds something else: code and tables do not fit
   */
  check(row: Readonly<Record<string, SqlValue>>): T;
}

/** The type of the rows that a {@link Row} describes. */
export type RowOf<R> = R extends Row<infer T> ? T : never;

export const text: Column<string> = { what: "text", holds: (value) => typeof value === "string" };

/** A whole number up to 2^53-1 either side of zero. */
export const integer: Column<number> = {
  what: "a whole number",
  holds: (value) => Number.isSafeInteger(value),
};

export const real: Column<number> = { what: "a number", holds: (value) => typeof value === "number" };

export const bytes: Column<Uint8Array> = {
  what: "bytes",
  holds: (value) => value instanceof Uint8Array,
};

/** 0 or 1. */
export const flag: Column<0 | 1> = oneOf(0, 1);

export function nullable<T>({ what, holds }: Column<T>): Column<T | null> {
  return { what: `${what} or null`, holds: (value) => value === null || holds(value) };
}

/** A column that some statements leave out. */
export function optional<T>({ what, holds }: Column<T>): Column<T | undefined> {
  return { what: `${what} or nothing`, holds: (value) => value === undefined || holds(value) };
}

/** One of a few words or numbers. */
export function oneOf<const T extends string | number>(...values: readonly T[]): Column<T> {
  const all = new Set<unknown>(values);
  return { what: `one of ${values.join(", ")}`, holds: (value) => all.has(value) };
}

/** A number of an enum of the contracts. */
export function memberOf<T extends number>(members: Readonly<Record<string, T>>): Column<T> {
  return oneOf(...Object.values(members));
}

/** Describes rows. The columns have to be those of `T`, where the call names it. */
export function row<T extends object>(columns: { readonly [K in keyof T]-?: Column<T[K]> }): Row<T> {
  const entries = Object.entries<Pick<Column<never>, "holds" | "what">>(columns);
  return {
    check(found) {
      for (const [name, { holds, what }] of entries) {
        if (!holds(found[name])) throw new TypeError(`column ${name} of a row is not ${what}`);
      }
      return found as T;
    },
  };
}

/** Says that there is a row: the statement asks for nothing else. */
export const FOUND: Row<object> = row({});
