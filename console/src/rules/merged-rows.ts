interface RowRules<Row> {
  readonly idOf: (row: Row) => string;
  readonly timeOf: (row: Row) => number;
  /** Whether the state `one` of an object is at least as new as its state `other`. */
  readonly isNewer: (one: Row, other: Row) => boolean;
}

/**
 * Merges the newest rows, which are read often, with rows from earlier reads. Each object occurs once, in its newest
 * state, and the newest object comes first.
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
