import type { SqlValue } from "./sql-value.ts";

/**
 * The kinds of SQL values. Each kind is one bit, so that a column can allow several kinds. A bit mask is much
 * faster than one function per column.
 */
const Kind = {
  TEXT: 1,
  WHOLE: 2,
  FRACTION: 4,
  LARGE: 8,
  BYTES: 16,
  NULL: 32,
  ABSENT: 64,
  OTHER: 128,
} as const;

/** The type of a column's values. */
export interface Column<T> {
  /** Describes the type in words for error messages, e.g. `a whole number`. */
  readonly description: string;
  /** The allowed kinds, as bits of {@link Kind}. */
  readonly kinds: number;
  /** The allowed values of these kinds; absent when every value is allowed. */
  readonly values?: ReadonlySet<unknown>;
  /** Never set. This member makes columns of different sets of words incompatible with each other for TypeScript. */
  readonly type?: (value: T) => T;
}

/** An unchecked row: values by column name. */
export type Cells = Readonly<Record<string, SqlValue>>;

/** The columns of a statement's rows. Declare each Row once, beside its table. */
export interface Row<T> {
  /**
   * Checks each column, and returns the same object with its type.
   *
   * @throws TypeError when a column is missing or has another type, because program and tables then do not match
   */
  check(row: Cells): T;
}

/** The type of the rows that a {@link Row} describes. */
export type RowOf<R> = R extends Row<infer T> ? T : never;

export const text: Column<string> = { description: "text", kinds: Kind.TEXT };

/** An integer from -(2^53-1) to 2^53-1. */
export const integer: Column<number> = { description: "a whole number", kinds: Kind.WHOLE };

/** An integer of 64 bits: an amount of money, or a sum of amounts. */
export const int64: Column<number | bigint> = {
  description: "a whole number of 64 bits",
  kinds: Kind.WHOLE | Kind.LARGE,
};

export const real: Column<number> = { description: "a number", kinds: Kind.WHOLE | Kind.FRACTION };

export const bytes: Column<Uint8Array> = { description: "bytes", kinds: Kind.BYTES };

/** A truth value: 0 or 1. */
export const flag: Column<0 | 1> = oneOf(0, 1);

export function nullable<T>(column: Column<T>): Column<T | null> {
  return widened(column, Kind.NULL, null, "null");
}

/** Returns a column that may be absent, because some statements do not select it. */
export function optional<T>(column: Column<T>): Column<T | undefined> {
  return widened(column, Kind.ABSENT, undefined, "nothing");
}

function widened<T, V>(
  { description, kinds, values }: Column<T>,
  kind: number,
  value: V,
  word: string,
): Column<T | V> {
  return {
    description: `${description} or ${word}`,
    kinds: kinds | kind,
    ...(values !== undefined && { values: new Set([...values, value]) }),
  };
}

/** Makes a column for a fixed set of words or numbers. */
export function oneOf<const T extends string | number>(...values: readonly T[]): Column<T> {
  const kinds = values.reduce((bits, value) => bits | kindOf(value), 0);
  return { description: `one of ${values.join(", ")}`, kinds, values: new Set(values) };
}

/** Makes a column for the numbers of an enum in the contracts. */
export function memberOf<T extends number>(members: Readonly<Record<string, T>>): Column<T> {
  return oneOf(...Object.values(members));
}

function kindOf(value: SqlValue | undefined): number {
  switch (typeof value) {
    case "string":
      return Kind.TEXT;
    case "number":
      return Number.isSafeInteger(value) ? Kind.WHOLE : Kind.FRACTION;
    case "bigint":
      return Kind.LARGE;
    case "undefined":
      return Kind.ABSENT;
    default:
      return value === null ? Kind.NULL : value instanceof Uint8Array ? Kind.BYTES : Kind.OTHER;
  }
}

/** Whether the column allows the value. */
export function accepts(
  { kinds, values }: Omit<Column<never>, "type">,
  value: SqlValue | undefined,
): boolean {
  return (kinds & kindOf(value)) !== 0 && (values === undefined || values.has(value));
}

/**
 * Describes the rows of a statement. If a call gives the type argument `T`, TypeScript checks that the columns match
 * `T`.
 */
export function row<T extends object>(columns: { readonly [K in keyof T]-?: Column<T[K]> }): Row<T> {
  const accepted = Object.entries<Omit<Column<never>, "type">>(columns).map(([name, column]) => ({
    name,
    column,
  }));
  return {
    check(found) {
      for (const { name, column } of accepted) {
        if (!accepts(column, found[name]))
          throw new TypeError(`column ${name} of a row is not ${column.description}`);
      }
      return found as T;
    },
  };
}

/** A row without columns, for a statement that only tests whether a row exists. */
export const FOUND: Row<object> = row({});

/** Rows with any columns. The code that uses a value must check its kind. */
export const CELLS: Row<Cells> = { check: (found) => found };
