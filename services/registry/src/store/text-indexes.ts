import type { ReadTx } from "@depute/store";
import { postgresText } from "./postgres-text-index.ts";
import { fts5, type TextIndex } from "./text-index.ts";

/** Returns the text index of the database in which the transaction runs. */
export function textIndexOf(tx: ReadTx): TextIndex {
  return tx.dialect === "sqlite" ? fts5 : postgresText;
}
