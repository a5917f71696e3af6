interface RowRules<Row> {
  readonly idOf: (row: Row) => string;
  readonly timeOf: (row: Row) => number;
  /** Whether the row `one` has the same state of an object as the row `other`, or a newer state. */
  readonly isNewer: (one: Row, other: Row) => boolean;
}

/**
 * Merges the newest rows, which are read often, with rows from earlier reads. In the result each object has one row,
 * with its newest state. The newest object is first.
 */
export function mergedRows<Row>(
  head: readonly Row[],
  older: readonly Row[],
  { idOf, timeOf, isNewer }: RowRules<Row>,
): Row[] {
  const byId = new Map<string, Row>();
  for (const row of [...older, ...head]) {
    const knownRow = byId.get(idOf(row));
    if (knownRow === undefined || isNewer(row, knownRow)) byId.set(idOf(row), row);
  }
  return [...byId.values()].sort((one, other) => timeOf(other) - timeOf(one));
}
