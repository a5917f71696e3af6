/**
 * The type of parameters and column values. INTEGER columns return `number` when that is exact (up to 2^53-1 on either
 * side of zero), else `bigint`. A `bigint` parameter must fit 64 bits; a `number` must be finite. The maximum in
 * Depute's own columns is 2^53-1, so their type is `number`. Booleans do not exist: use 0 and 1.
 */
export type SqlValue = null | number | bigint | string | Uint8Array;
