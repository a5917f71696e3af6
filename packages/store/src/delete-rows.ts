import type { SqlValue, WriteTx } from "./store.ts";

/** The rows of one table to delete. Names and conditions are constants of the code, never input of a caller. */
export interface RowSelection {
  readonly table: string;
  /** The columns of one unique key of the table. */
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
