/**
 * Repeats the last value until the number of values is a power of two. Queries with such lists have only a few
 * different lengths, so the store prepares only a few statements.
 */
export function padded<Value>(values: readonly Value[]): readonly Value[] {
  const last = values.at(-1);
  if (last === undefined) return values;
  const length = 2 ** Math.ceil(Math.log2(values.length));
  return [...values, ...Array.from({ length: length - values.length }, () => last)];
}
