import { canonicalBytes } from "@depute/core";
import type { Authority } from "@depute/dct";
import { type ReadTx, type RequestKey, RequestMemory, type WriteTx } from "@depute/store";

/** The stored responses to mint and purge requests, for replays. */
export const requests = new RequestMemory("mint_requests");

/**
 * Returns the authority block that an earlier call of this request minted; undefined for a new request.
 *
 * @throws DeputeError REQUEST_ID_REUSED when the caller used the id for another request
 */
export async function findMint(tx: ReadTx, key: RequestKey): Promise<Authority | undefined> {
  const answer = await requests.find(tx, key);
  return answer && (JSON.parse(new TextDecoder().decode(answer)) as Authority);
}

/**
 * Stores the authority block of a request for replays.
 *
 * @param now epoch milliseconds
 */
export async function insertMint(
  tx: WriteTx,
  key: RequestKey,
  authority: Authority,
  now: number,
): Promise<void> {
  await requests.remember(tx, key, canonicalBytes(authority), now);
}
