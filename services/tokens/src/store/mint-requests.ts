import { requestIdReused } from "@depute/core";
import type { Authority } from "@depute/dct";
import { type ReadTx, row, text, type WriteTx } from "@depute/store";

const DIGEST_AUTHORITY_ROW = row({ digest: text, authority: text });

/** Milliseconds that a minted authority is kept for its request to be repeated: no token outlives it. */
export const MINT_RETENTION_MS = 24 * 60 * 60 * 1000;

/** Old ones forgotten with each new one: more than one, so that they get fewer after a quiet time. */
const FORGOTTEN_AT_ONCE = 10;

/** One minting call, as it is told from others. */
export interface MintKey {
  readonly caller: string;
  readonly requestId: string;
  /** Of everything in the request. */
  readonly digest: string;
}

/**
 * The authority that this request minted before; undefined for a new one.
 *
 * @throws DeputeError REQUEST_ID_REUSED when the caller used the id for something else
 */
export async function recallMint(tx: ReadTx, key: MintKey): Promise<Authority | undefined> {
  const row = await tx.get(
    DIGEST_AUTHORITY_ROW,
    "SELECT digest, authority FROM mint_requests WHERE caller = ? AND request_id = ?",
    [key.caller, key.requestId],
  );
  if (row === undefined) return undefined;
  if (row.digest === key.digest) return JSON.parse(row.authority) as Authority;
  throw requestIdReused(key.requestId);
}

/** Keeps the authority, and forgets a few that were kept long enough. */
export async function rememberMint(tx: WriteTx, key: MintKey, authority: string, now: number): Promise<void> {
  await tx.run(
    "INSERT INTO mint_requests (caller, request_id, digest, authority, create_ms) VALUES (?, ?, ?, ?, ?)",
    [key.caller, key.requestId, key.digest, authority, now],
  );
  await tx.run(
    `DELETE FROM mint_requests WHERE (caller, request_id) IN
       (SELECT caller, request_id FROM mint_requests WHERE create_ms < ? ORDER BY create_ms LIMIT ?)`,
    [now - MINT_RETENTION_MS, FORGOTTEN_AT_ONCE],
  );
}
