import type { PagePosition } from "@depute/core";
import { integer, nullable, type ReadTx, row, type SqlValue, text, type WriteTx } from "@depute/store";
import {
  type Page,
  positionParams,
  readPage,
  STORED_DOCUMENT_ROW,
  type StoredDocument,
} from "./documents.ts";

const ID_ROW = row({ id: text });
const ID_DOCUMENT_ROW = row({ id: text, document: text });
const LOG_INDEX_ROW = row({ logIndex: nullable(integer) });

const COLUMNS = `id, digest, document, record_time AS "storeTime", organization`;

export function getAttestation(tx: ReadTx, id: string): Promise<StoredDocument | undefined> {
  return tx.get(STORED_DOCUMENT_ROW, `SELECT ${COLUMNS} FROM attestations WHERE id = ?`, [id]);
}

export async function insertAttestation(
  tx: WriteTx,
  attestation: StoredDocument,
  { contractId, principal }: { contractId: string; principal: string },
  logIndex: number,
): Promise<void> {
  const { id, organization, digest, document, storeTime } = attestation;
  await tx.run(
    `INSERT INTO attestations (id, contract_id, principal, organization, digest, document, record_time, log_index)
     VALUES (?, ?, ?, ?, ?, ?, ?, ?)`,
    [id, contractId, principal, organization, digest, document, storeTime, logIndex],
  );
}

/** Returns the first of at most 256 ids that is not the id of a stored attestation; undefined if all are stored. */
export async function firstMissing(tx: ReadTx, ids: readonly string[]): Promise<string | undefined> {
  if (ids.length === 0) return undefined;
  const marks = ids.map(() => "?").join(", ");
  const idRows = await tx.all(ID_ROW, `SELECT id FROM attestations WHERE id IN (${marks})`, ids);
  const knownIds = new Set(idRows.map(({ id }) => id));
  return ids.find((id) => !knownIds.has(id));
}

/** Returns a page of a contract's attestations, oldest first. */
export function listAttestations(
  tx: ReadTx,
  contractId: string,
  size: number,
  after: PagePosition | undefined,
): Promise<Page> {
  const params: SqlValue[] = [contractId];
  const position = positionParams(after);
  if (position !== undefined) params.push(...position);
  const keys = `SELECT id, record_time AS "time", length(document) AS "size" FROM attestations
    WHERE contract_id = ? ${position === undefined ? "" : "AND (record_time, id) > (?, ?)"}
    ORDER BY record_time, id LIMIT ?`;
  return readPage(tx, size, keys, [...params, size + 1], (id) => getAttestation(tx, id));
}

/**
 * Returns the attestation's index in the transparency log: null if the log has no leaf for it, undefined if the id is
 * unknown.
 */
export async function getLogIndex(tx: ReadTx, id: string): Promise<number | null | undefined> {
  const row = await tx.get(LOG_INDEX_ROW, `SELECT log_index AS "logIndex" FROM attestations WHERE id = ?`, [
    id,
  ]);
  return row?.logIndex;
}

export async function setLogIndex(tx: WriteTx, id: string, logIndex: number): Promise<void> {
  await tx.run("UPDATE attestations SET log_index = ? WHERE id = ?", [logIndex, id]);
}

/** Returns attestations that have no leaf in the transparency log, oldest first. */
export function unlogged(tx: ReadTx, size: number): Promise<Pick<StoredDocument, "id" | "document">[]> {
  return tx.all(
    ID_DOCUMENT_ROW,
    "SELECT id, document FROM attestations WHERE log_index IS NULL ORDER BY record_time, id LIMIT ?",
    [size],
  );
}

/** Reads attestations by at most 256 ids. Omits unknown ids. */
export async function getAttestations(
  tx: ReadTx,
  ids: readonly string[],
): Promise<Map<string, StoredDocument>> {
  const marks = ids.map(() => "?").join(", ");
  const rows = await tx.all(
    STORED_DOCUMENT_ROW,
    `SELECT ${COLUMNS} FROM attestations WHERE id IN (${marks})`,
    ids,
  );
  return new Map(rows.map((row) => [row.id, row]));
}
