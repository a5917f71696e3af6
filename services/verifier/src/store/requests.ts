import { requestIdReused } from "@depute/core";
import { type ReadTx, row, text, type WriteTx } from "@depute/store";

const DIGEST_ATTESTATION_ID_ROW = row({ digest: text, attestationId: text });

/** How long a request id is remembered, in milliseconds: a retry comes sooner. */
export const REQUEST_MEMORY_MS = 24 * 3_600_000;

/** Names a request: the same caller's id stands for one body. */
export interface RequestKey {
  caller: string;
  requestId: string;
  /** Digest of the body. */
  digest: string;
}

/**
 * The id of what answered this very request before: an attestation, or a contract.
 *
 * @throws DeputeError REQUEST_ID_REUSED when the id came with another body
 */
export async function answeredBefore(tx: ReadTx, key: RequestKey): Promise<string | undefined> {
  const row = await tx.get(
    DIGEST_ATTESTATION_ID_ROW,
    `SELECT digest, attestation_id AS "attestationId" FROM requests WHERE caller = ? AND request_id = ?`,
    [key.caller, key.requestId],
  );
  if (row === undefined) return undefined;
  if (row.digest === key.digest) return row.attestationId;
  throw requestIdReused(key.requestId);
}

/** Remembers an answer, and forgets those that are too old. @param now milliseconds since the Unix epoch */
export async function rememberAnswer(
  tx: WriteTx,
  key: RequestKey,
  answerId: string,
  now: number,
): Promise<void> {
  await tx.run("DELETE FROM requests WHERE create_time < ?", [now - REQUEST_MEMORY_MS]);
  await tx.run(
    "INSERT INTO requests (caller, request_id, digest, attestation_id, create_time) VALUES (?, ?, ?, ?, ?)",
    [key.caller, key.requestId, key.digest, answerId, now],
  );
}
