import type { SqlValue, WriteTx } from "./store.ts";

/** Rows of one table. All names and conditions come from the code. */
export interface RowSelection {
  readonly table: string;
  /** The columns of a unique key. */
  readonly keys: readonly string[];
  /** An SQL condition with `?` placeholders. */
  readonly where: string;
  readonly params: readonly SqlValue[];
}

/**
 * Deletes selected rows.
 *
 * @param limit maximum number of rows; 0 or less deletes none
 * @returns the number of deleted rows
 */
export async function deleteRows(
  tx: WriteTx,
  { table, keys, where, params }: RowSelection,
  limit: number,
): Promise<number> {
  if (limit <= 0) return 0;
  const columns = keys.join(", ");
  const { changes } = await tx.run(
    `DELETE FROM ${table} WHERE (${columns}) IN
       (SELECT ${columns} FROM ${table} WHERE ${where} ORDER BY ${columns} LIMIT ?)`,
    [...params, limit],
  );
  return changes;
}
