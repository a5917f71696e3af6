/**
 * The type of parameters and column values. A value of an INTEGER column is a `number` from -(2^53-1) to 2^53-1, and a
 * `bigint` outside this range. A `bigint` parameter must fit 64 bits; a `number` must be finite. In Depute's own
 * columns, only amounts of money may be outside this range (see `int64`); all other integers are `number`. Booleans are
 * 0 and 1.
 */
export type SqlValue = null | number | bigint | string | Uint8Array;
