import { DeputeError, ErrorReason, type Owned, type PagePosition } from "@depute/core";
import { isPurged, type ReadTx, row, type SqlValue, text, type WriteTx } from "@depute/store";
import {
  type Page,
  positionParams,
  readPage,
  STORED_DOCUMENT_ROW,
  type StoredDocument,
} from "./documents.ts";

const COLUMNS = `id, digest, document, create_time AS "storeTime", organization`;
const OWNER_ROW = row({ organization: text });

export function getContract(tx: ReadTx, id: string): Promise<StoredDocument | undefined> {
  return tx.get(STORED_DOCUMENT_ROW, `SELECT ${COLUMNS} FROM contracts WHERE id = ?`, [id]);
}

/** Returns the organization that owns a contract; undefined if the contract is unknown. */
export function contractOwner(tx: ReadTx, id: string): Promise<Owned | undefined> {
  return tx.get(OWNER_ROW, "SELECT organization FROM contracts WHERE id = ?", [id]);
}

/**
 * Inserts a new contract.
 *
 * @throws DeputeError CONTRACT_EXISTS if a purge has deleted a contract with this id
 */
export async function insertContract(tx: WriteTx, contract: StoredDocument, issuer: string): Promise<void> {
  const { id, organization, digest, document, storeTime } = contract;
  if (await isPurged(tx, "contract", id)) {
    throw new DeputeError(ErrorReason.CONTRACT_EXISTS, "a purged contract had this id; use a new id", {
      metadata: { contract: id },
      violations: [{ field: "contract.id", description: "belonged to a purged contract" }],
    });
  }
  await tx.run(
    "INSERT INTO contracts (id, issuer, organization, digest, document, create_time) VALUES (?, ?, ?, ?, ?, ?)",
    [id, issuer, organization, digest, document, storeTime],
  );
}

/**
 * Returns a page of an issuer's contracts, newest first. If the issuer is undefined, returns contracts of all issuers.
 */
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
