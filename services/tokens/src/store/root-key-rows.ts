import type { RootSuccession } from "@depute/dct/transparency";
import { flag, integer, type ReadTx, row, text, type WriteTx } from "@depute/store";
import type { RootKeyEnd, RootKeyLife } from "../rules/root-key.ts";

/** A root key as stored. */
export interface RootKeyRow extends RootKeyLife {
  /** The number of the key: 1 for the first. */
  readonly number: number;
  /** The private key, sealed by the master key. Empty for a retired key, and for the key of the key file. */
  readonly sealed: string;
  /** The signed statement that this key follows the key before it, as JSON; empty for a key of the key file. */
  readonly succession: string;
  /** The rotation that created the key: its caller, request id and digest. Empty for a key of the key file. */
  readonly caller: string;
  readonly requestId: string;
  readonly digest: string;
}

const ROOT_KEY_ROW = row({
  ...{
    number: integer,
    principal: text,
    createTime: integer,
    retireTime: integer,
    isRetired: flag,
    sealed: text,
  },
  ...{ succession: text, caller: text, requestId: text, digest: text },
});
const CHANGE_ROW = row<{ change: number }>({ change: integer });

const KEYS = `SELECT k.number AS "number", k.principal AS principal, k.create_ms AS "createTime",
    k.retire_ms AS "retireTime", k.retired AS "isRetired", COALESCE(s.sealed, '') AS sealed, k.succession AS succession, k.caller AS caller,
    k.request_id AS "requestId", k.digest AS digest
  FROM root_keys k LEFT JOIN root_key_secrets s ON s.principal = k.principal`;

/** Returns all root keys, oldest first. */
export async function readRootKeys(tx: ReadTx): Promise<RootKeyRow[]> {
  const rows = await tx.all(ROOT_KEY_ROW, `${KEYS} ORDER BY k.number`);
  return rows.map((key) => ({ ...key, isRetired: key.isRetired === 1 }));
}

/** Returns the number of the last change of any root key; 0 before the first key. */
export async function lastRootChange(tx: ReadTx): Promise<number> {
  const last = await tx.get(CHANGE_ROW, "SELECT COALESCE(MAX(change), 0) AS change FROM root_keys");
  return last?.change ?? 0;
}

/** Inserts a key. The sealed private key is in the table root_key_secrets, from which a retirement deletes it. */
export async function insertRootKey(tx: WriteTx, key: RootKeyRow): Promise<void> {
  await tx.run(
    `INSERT INTO root_keys
       (number, principal, create_ms, retire_ms, retired, succession, caller, request_id, digest, change)
     SELECT ?, ?, ?, ?, 0, ?, ?, ?, ?, COALESCE(MAX(change), 0) + 1 FROM root_keys`,
    [
      ...[key.number, key.principal, key.createTime, key.retireTime, key.succession],
      ...[key.caller, key.requestId, key.digest],
    ],
  );
  if (key.sealed === "") return;
  await tx.run("INSERT INTO root_key_secrets (principal, sealed) VALUES (?, ?)", [key.principal, key.sealed]);
}

/** Stores the end of a key. */
export async function endRootKey(
  tx: WriteTx,
  { principal, retireTime, isRetired }: RootKeyEnd,
): Promise<void> {
  await tx.run(
    `UPDATE root_keys SET retire_ms = ?, retired = ?, change = (SELECT MAX(change) + 1 FROM root_keys)
     WHERE principal = ?`,
    [retireTime, isRetired ? 1 : 0, principal],
  );
}

/**
 * Marks the keys whose overlap ended before a time as retired, and erases the private keys of all retired keys.
 *
 * @returns the number of marked keys
 */
export async function eraseRetired(tx: WriteTx, before: number): Promise<number> {
  const { changes } = await tx.run(
    `UPDATE root_keys SET retired = 1, change = (SELECT MAX(change) + 1 FROM root_keys)
     WHERE retired = 0 AND retire_ms > 0 AND retire_ms <= ?`,
    [before],
  );
  await tx.run(
    "DELETE FROM root_key_secrets WHERE principal IN (SELECT principal FROM root_keys WHERE retired = 1)",
  );
  return changes;
}

/** Parses a stored statement of succession; undefined without one. */
export function parseSuccession(text: string): RootSuccession | undefined {
  return text === "" ? undefined : (JSON.parse(text) as RootSuccession);
}
