import { fromBinary, toBinary } from "@bufbuild/protobuf";
import {
  type VerificationResult,
  VerificationResultSchema,
} from "@depute/contracts/agenta/delegation/v0/verification_result_pb";
import type { ReadTx, WriteTx } from "@depute/store";

/** A review that an execution waits for, as far as the verifier has to be told something. */
export interface ReviewRow {
  readonly requestId: string;
  /** Empty while it is not created. */
  readonly reviewId: string;
}

/** Notes that a person has to be asked. */
export async function insertReview(tx: WriteTx, requestId: string): Promise<void> {
  await tx.run("INSERT INTO execution_reviews (request_id, review_id, to_tell) VALUES (?, '', 1)", [
    requestId,
  ]);
}

/** Notes that nobody need decide any more. */
export async function closeReview(tx: WriteTx, requestId: string): Promise<boolean> {
  const { changes } = await tx.run("UPDATE execution_reviews SET to_tell = 1 WHERE request_id = ?", [
    requestId,
  ]);
  return changes > 0;
}

export async function nameReview(tx: WriteTx, requestId: string, reviewId: string): Promise<void> {
  await tx.run("UPDATE execution_reviews SET review_id = ?, to_tell = 0 WHERE request_id = ?", [
    reviewId,
    requestId,
  ]);
}

export async function deleteReview(tx: WriteTx, requestId: string): Promise<void> {
  await tx.run("DELETE FROM execution_reviews WHERE request_id = ?", [requestId]);
}

export async function reviewsToTell(tx: ReadTx, limit: number): Promise<ReviewRow[]> {
  return tx.all<ReviewRow>(
    `SELECT request_id AS "requestId", review_id AS "reviewId" FROM execution_reviews WHERE to_tell = 1
     ORDER BY request_id LIMIT ?`,
    [limit],
  );
}

/** A judgement that the verifier has not been found to have. */
export interface VerificationRow {
  readonly verificationId: string;
  readonly result: VerificationResult;
}

/**
 * Notes a judgement until the verifier's answer to it is settled; the same one is noted once.
 *
 * @param retryMs from when on it is told again, epoch milliseconds
 */
export async function insertVerification(
  tx: WriteTx,
  result: VerificationResult,
  retryMs: number,
): Promise<void> {
  await tx.run(
    `INSERT INTO execution_verifications (verification_id, request_id, result, retry_ms) VALUES (?, ?, ?, ?)
     ON CONFLICT (verification_id) DO NOTHING`,
    [result.verificationId, result.requestId, toBinary(VerificationResultSchema, result), retryMs],
  );
}

/** Forgets a judgement; another one of its id stays. */
export async function deleteVerification(tx: WriteTx, result: VerificationResult): Promise<void> {
  await tx.run("DELETE FROM execution_verifications WHERE verification_id = ? AND result = ?", [
    result.verificationId,
    toBinary(VerificationResultSchema, result),
  ]);
}

export async function verificationsToTell(
  tx: ReadTx,
  nowMs: number,
  limit: number,
): Promise<VerificationRow[]> {
  const rows = await tx.all<{ verification_id: string; result: Uint8Array }>(
    `SELECT verification_id, result FROM execution_verifications WHERE retry_ms <= ?
     ORDER BY retry_ms, verification_id LIMIT ?`,
    [nowMs, limit],
  );
  return rows.map((row) => ({
    verificationId: row.verification_id,
    result: fromBinary(VerificationResultSchema, row.result),
  }));
}
