import { type ReadTx, type RequestKey, RequestMemory, type WriteTx } from "@depute/store";

/** The stored responses to requests, for replays. */
export const requests = new RequestMemory("requests");

/**
 * Returns the id of the attestation or contract that this request created; undefined for a new request.
 *
 * @throws DeputeError REQUEST_ID_REUSED if the caller used the request id for another request
 */
export async function findRequest(tx: ReadTx, key: RequestKey): Promise<string | undefined> {
  const answer = await requests.find(tx, key);
  return answer && new TextDecoder().decode(answer);
}

/**
 * Stores a request id, together with the id of the record that the request created.
 *
 * @param now epoch milliseconds
 */
export async function insertRequest(
  tx: WriteTx,
  key: RequestKey,
  madeId: string,
  now: number,
): Promise<void> {
  await requests.remember(tx, key, new TextEncoder().encode(madeId), now);
}
