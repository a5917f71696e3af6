/**
 * What a statement takes and gives.
 *
 * INTEGER columns come back as `number` when that is exact (up to 2^53-1 either side of zero) and as `bigint` when not;
 * a `bigint` parameter must fit 64 bits, a `number` must be finite. Columns of ours hold at most 2^53-1, so their type
 * is `number`. There are no booleans: use 0 and 1.
 */
export type SqlValue = null | number | bigint | string | Uint8Array;
