import { fromBinary, toBinary } from "@bufbuild/protobuf";
import {
  type VerificationResult,
  VerificationResultSchema,
} from "@depute/contracts/agenta/delegation/v0/verification_result_pb";
import { bytes, type ReadTx, row, text, type WriteTx } from "@depute/store";

const VERIFICATION_ROW = row({ verification_id: text, result: bytes });

/** A review that the outbox must create, decide or withdraw at the verifier service. */
export interface ReviewRow {
  readonly requestId: string;
  /** The id of the review; empty until the verifier service has created it. */
  readonly reviewId: string;
}

const REVIEW_ROW = row<ReviewRow>({ requestId: text, reviewId: text });

/** Records that the outbox must create a review of an execution. */
export async function insertReview(tx: WriteTx, requestId: string): Promise<void> {
  await tx.run("INSERT INTO execution_reviews (request_id, review_id, to_tell) VALUES (?, '', 1)", [
    requestId,
  ]);
}

/**
 * Records that the outbox must decide or withdraw a review, because the execution no longer waits for the review.
 * Returns false if the execution has no review.
 */
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
  return tx.all(
    REVIEW_ROW,
    `SELECT request_id AS "requestId", review_id AS "reviewId" FROM execution_reviews WHERE to_tell = 1
     ORDER BY request_id LIMIT ?`,
    [limit],
  );
}

/** A verification result that the verifier service has not decided. */
export interface VerificationRow {
  readonly verificationId: string;
  readonly result: VerificationResult;
}

/**
 * Stores a verification result until the verifier service has answered. A second insert with the same id changes
 * nothing.
 *
 * @param retryMs the time at which the outbox sends the result again, epoch milliseconds
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

/** Deletes a stored verification result. Does not delete a different result with the same id. */
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
  const rows = await tx.all(
    VERIFICATION_ROW,
    `SELECT verification_id, result FROM execution_verifications WHERE retry_ms <= ?
     ORDER BY retry_ms, verification_id LIMIT ?`,
    [nowMs, limit],
  );
  return rows.map((row) => ({
    verificationId: row.verification_id,
    result: fromBinary(VerificationResultSchema, row.result),
  }));
}
