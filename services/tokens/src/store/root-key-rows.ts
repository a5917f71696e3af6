import type { RootSuccession } from "@depute/dct/transparency";
import { integer, type ReadTx, row, text, type WriteTx } from "@depute/store";
import type { RootKeyEnd, RootKeyLife } from "../rules/root-key.ts";

/** A root key as stored. */
export interface RootKeyRow extends RootKeyLife {
  /** The number of the key: 1 for the first. */
  readonly number: number;
  /** The private key, sealed by the master key. Empty for a retired key, and for the key of the key file. */
  readonly sealed: string;
  /** The statement by which the key before names this one, JSON; empty without one. */
  readonly succession: string;
  /** The rotation that created the key: its caller, request id and digest. Empty for a key of the key file. */
  readonly caller: string;
  readonly requestId: string;
  readonly digest: string;
}

const ROOT_KEY_ROW = row<RootKeyRow>({
  ...{ number: integer, principal: text, createTime: integer, retireTime: integer, sealed: text },
  ...{ succession: text, caller: text, requestId: text, digest: text },
});
const CHANGE_ROW = row<{ change: number }>({ change: integer });

const KEYS = `SELECT k.number AS "number", k.principal AS principal, k.create_ms AS "createTime",
    k.retire_ms AS "retireTime", COALESCE(s.sealed, '') AS sealed, k.succession AS succession, k.caller AS caller,
    k.request_id AS "requestId", k.digest AS digest
  FROM root_keys k LEFT JOIN root_key_secrets s ON s.principal = k.principal`;

/** Returns all root keys, oldest first. */
export async function readRootKeys(tx: ReadTx): Promise<RootKeyRow[]> {
  return tx.all(ROOT_KEY_ROW, `${KEYS} ORDER BY k.number`);
}

/** Returns the number of the last change of any root key; 0 before the first key. */
export async function lastRootChange(tx: ReadTx): Promise<number> {
  const last = await tx.get(CHANGE_ROW, "SELECT COALESCE(MAX(change), 0) AS change FROM root_keys");
  return last?.change ?? 0;
}

/** Inserts a key. Its seed goes to a table of its own, so that a retirement erases it. */
export async function insertRootKey(tx: WriteTx, key: RootKeyRow): Promise<void> {
  await tx.run(
    `INSERT INTO root_keys (number, principal, create_ms, retire_ms, succession, caller, request_id, digest, change)
     SELECT ?, ?, ?, ?, ?, ?, ?, ?, COALESCE(MAX(change), 0) + 1 FROM root_keys`,
    [
      ...[key.number, key.principal, key.createTime, key.retireTime, key.succession],
      ...[key.caller, key.requestId, key.digest],
    ],
  );
  if (key.sealed === "") return;
  await tx.run("INSERT INTO root_key_secrets (principal, sealed) VALUES (?, ?)", [key.principal, key.sealed]);
}

/** Stores the end of a key. */
export async function endRootKey(tx: WriteTx, { principal, retireTime }: RootKeyEnd): Promise<void> {
  await tx.run(
    `UPDATE root_keys SET retire_ms = ?, change = (SELECT MAX(change) + 1 FROM root_keys) WHERE principal = ?`,
    [retireTime, principal],
  );
}

/** Erases the private keys of retired keys; returns their number. */
export async function eraseRetired(tx: WriteTx, now: number): Promise<number> {
  const { changes } = await tx.run(
    `DELETE FROM root_key_secrets WHERE principal IN
       (SELECT principal FROM root_keys WHERE retire_ms > 0 AND retire_ms <= ?)`,
    [now],
  );
  return changes;
}

/** Parses a stored statement of succession; undefined without one. */
export function parseSuccession(text: string): RootSuccession | undefined {
  return text === "" ? undefined : (JSON.parse(text) as RootSuccession);
}
