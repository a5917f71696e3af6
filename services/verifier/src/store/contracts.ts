import type { PagePosition } from "@depute/core";
import type { ReadTx, SqlValue, WriteTx } from "@depute/store";
import {
  type Page,
  positionParams,
  readPage,
  STORED_DOCUMENT_ROW,
  type StoredDocument,
} from "./documents.ts";

const COLUMNS = `id, digest, document, create_time AS "storeTime"`;

export function getContract(tx: ReadTx, id: string): Promise<StoredDocument | undefined> {
  return tx.get(STORED_DOCUMENT_ROW, `SELECT ${COLUMNS} FROM contracts WHERE id = ?`, [id]);
}

export async function insertContract(tx: WriteTx, contract: StoredDocument, issuer: string): Promise<void> {
  const { id, digest, document, storeTime } = contract;
  await tx.run("INSERT INTO contracts (id, issuer, digest, document, create_time) VALUES (?, ?, ?, ?, ?)", [
    id,
    issuer,
    digest,
    document,
    storeTime,
  ]);
}

/** Contracts newest first; of one issuer, when it is given. */
export function listContracts(
  tx: ReadTx,
  issuer: string | undefined,
  size: number,
  after: PagePosition | undefined,
): Promise<Page> {
  const conditions: string[] = [];
  const params: SqlValue[] = [];
  if (issuer !== undefined) {
    conditions.push("issuer = ?");
    params.push(issuer);
  }
  const position = positionParams(after);
  if (position !== undefined) {
    conditions.push("(create_time, id) < (?, ?)");
    params.push(...position);
  }
  const where = conditions.length === 0 ? "" : `WHERE ${conditions.join(" AND ")}`;
  const keys = `SELECT id, create_time AS "time", length(document) AS "size" FROM contracts ${where}
    ORDER BY create_time DESC, id DESC LIMIT ?`;
  return readPage(tx, size, keys, [...params, size + 1], (id) => getContract(tx, id));
}
