import { CELLS, row, text } from "../row.ts";
import type { SqlValue, Store } from "../store.ts";

const NAME_ROW = row({ name: text });

/**
 * Returns every value of every table as text, with bytes as latin1. Tests use this function to prove that a value is
 * not stored.
 */
export async function cellsOf(store: Store): Promise<string[]> {
  return store.read(async (tx) => {
    const tables = await tx.all(
      NAME_ROW,
      tx.dialect === "sqlite"
        ? "SELECT name FROM sqlite_master WHERE type = 'table'"
        : "SELECT table_name AS name FROM information_schema.tables WHERE table_schema = current_schema()",
    );
    const cells: string[] = [];
    for (const { name } of tables) {
      const rows = await tx.all(CELLS, `SELECT * FROM "${name}"`);
      for (const row of rows) cells.push(...Object.values(row).map(textOf));
    }
    return cells;
  });
}

function textOf(value: SqlValue): string {
  return value instanceof Uint8Array ? Buffer.from(value).toString("latin1") : String(value);
}
