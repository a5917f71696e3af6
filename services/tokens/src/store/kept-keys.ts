import { integer, nullable, oneOf, type ReadTx, row, text, type WriteTx } from "@depute/store";
import type { KeyLife } from "../rules/kept-key.ts";

const NUMBER_ROW = row({ number: integer });
const LAST_ROW = row({ last: nullable(integer) });

/** A kept key with its sealed private key. Times are epoch milliseconds. */
export interface StoredKey extends KeyLife {
  readonly position: number;
  readonly owner: string;
  /** The organization that owns the key; empty without an organization. */
  readonly organization: string;
  readonly requestId: string;
  /** The digest of the request that created the key; empty for a key that replaced another. */
  readonly digest: string;
  readonly principal: string;
  readonly agentId: string;
  readonly sealed: string;
  /** The id of the key that replaced this key; empty if no key replaced it. */
  readonly successorId: string;
  readonly createTime: number;
}

const STORED_KEY_ROW = row<StoredKey>({
  position: integer,
  id: text,
  owner: text,
  organization: text,
  requestId: text,
  digest: text,
  principal: text,
  agentId: text,
  sealed: text,
  state: oneOf("active", "replaced", "revoked"),
  successorId: text,
  createTime: integer,
  endTime: integer,
});

const MEMBERS = `position, id, owner, organization, request_id AS requestId, digest, principal, agent_id AS agentId, sealed, state,
  successor_id AS successorId, create_ms AS createTime, end_ms AS endTime`;

export async function findKey(tx: ReadTx, id: string): Promise<StoredKey | undefined> {
  return tx.get(STORED_KEY_ROW, `SELECT ${MEMBERS} FROM kept_keys WHERE id = ?`, [id]);
}

export async function findKeyByRequest(
  tx: ReadTx,
  owner: string,
  requestId: string,
): Promise<StoredKey | undefined> {
  const sql = `SELECT ${MEMBERS} FROM kept_keys WHERE owner = ? AND request_id = ?`;
  return tx.get(STORED_KEY_ROW, sql, [owner, requestId]);
}

/** Returns an owner's keys after a position, in the order of creation. */
export async function listKeys(
  tx: ReadTx,
  owner: string,
  after: number,
  limit: number,
): Promise<StoredKey[]> {
  return tx.all(
    STORED_KEY_ROW,
    `SELECT ${MEMBERS} FROM kept_keys WHERE owner = ? AND position > ? ORDER BY position LIMIT ?`,
    [owner, after, limit],
  );
}

export async function countKeys(tx: ReadTx, owner: string): Promise<number> {
  const row = await tx.get(NUMBER_ROW, "SELECT COUNT(*) AS number FROM kept_keys WHERE owner = ?", [owner]);
  return row?.number ?? 0;
}

/** Returns active keys that were created before a time. */
export async function keysOlderThan(tx: ReadTx, before: number, limit: number): Promise<StoredKey[]> {
  return tx.all(
    STORED_KEY_ROW,
    `SELECT ${MEMBERS} FROM kept_keys WHERE state = 'active' AND create_ms < ? ORDER BY create_ms LIMIT ?`,
    [before, limit],
  );
}

export async function insertKey(tx: WriteTx, key: Omit<StoredKey, "position">): Promise<StoredKey> {
  const last = await tx.get(LAST_ROW, "SELECT MAX(position) AS last FROM kept_keys");
  const position = (last?.last ?? 0) + 1;
  const {
    id,
    owner,
    organization,
    requestId,
    digest,
    principal,
    agentId,
    sealed,
    state,
    successorId,
    createTime,
    endTime,
  } = key;
  await tx.run(
    `INSERT INTO kept_keys (position, id, owner, organization, request_id, digest, principal, agent_id, sealed, state,
       successor_id, create_ms, end_ms) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
    [
      position,
      id,
      owner,
      organization,
      requestId,
      digest,
      principal,
      agentId,
      sealed,
      state,
      successorId,
      createTime,
      endTime,
    ],
  );
  return { ...key, position };
}

/** Records the replacement or revocation of a key. */
export async function endKey(
  tx: WriteTx,
  id: string,
  { state, successorId, endTime }: Pick<StoredKey, "state" | "successorId" | "endTime">,
): Promise<void> {
  await tx.run("UPDATE kept_keys SET state = ?, successor_id = ?, end_ms = ? WHERE id = ?", [
    ...[state, successorId, endTime, id],
  ]);
}
