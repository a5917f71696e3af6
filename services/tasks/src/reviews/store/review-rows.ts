import { integer, type ReadTx, row, text, type WriteTx } from "@depute/store";

/** The tasks service's record of the review of a held result. The verifier service stores the review. */
export interface HeldReview {
  /** The id of the review, a UUID that the tasks service chose. The verifier has the same id. */
  readonly reviewId: string;
  readonly taskId: string;
  /** Milliseconds for which the verifier waits for a decision. */
  readonly timeoutMs: number;
  /** 1 after the verifier has reported the escalation; otherwise 0. */
  readonly escalated: number;
}

const ROW = row({ reviewId: text, taskId: text, timeoutMs: integer, escalated: integer });
const NUMBER_ROW = row({ number: integer });

const COLUMNS = `review_id AS "reviewId", task_id AS "taskId", timeout_ms AS "timeoutMs", escalated`;

export async function insertReview(
  tx: WriteTx,
  { reviewId, taskId, timeoutMs }: Omit<HeldReview, "escalated">,
): Promise<void> {
  await tx.run("INSERT INTO task_reviews (review_id, task_id, timeout_ms) VALUES (?, ?, ?)", [
    reviewId,
    taskId,
    timeoutMs,
  ]);
}

/** Returns the review of a task's held result; undefined for none. */
export function reviewOfTask(tx: ReadTx, taskId: string): Promise<HeldReview | undefined> {
  return tx.get(ROW, `SELECT ${COLUMNS} FROM task_reviews WHERE task_id = ?`, [taskId]);
}

/** Returns a review by its id; undefined after the review's end. */
export function readReview(tx: ReadTx, reviewId: string): Promise<HeldReview | undefined> {
  return tx.get(ROW, `SELECT ${COLUMNS} FROM task_reviews WHERE review_id = ?`, [reviewId]);
}

const CALLING_ROW = row({ calling_ms: integer });

/**
 * Returns the time until which a replica's call about a task's review may be in progress, in epoch milliseconds; 0 for
 * no call.
 */
export async function callingUntil(tx: ReadTx, taskId: string): Promise<number> {
  const found = await tx.get(CALLING_ROW, "SELECT calling_ms FROM task_reviews WHERE task_id = ?", [taskId]);
  return found?.calling_ms ?? 0;
}

/**
 * Records that a replica calls the verifier about a task's review until a time in epoch milliseconds; 0 for no call.
 */
export async function noteCalling(tx: WriteTx, taskId: string, untilMs: number): Promise<void> {
  await tx.run("UPDATE task_reviews SET calling_ms = ? WHERE task_id = ?", [untilMs, taskId]);
}

export async function noteEscalated(tx: WriteTx, reviewId: string): Promise<void> {
  await tx.run("UPDATE task_reviews SET escalated = 1 WHERE review_id = ?", [reviewId]);
}

export async function deleteReview(tx: WriteTx, reviewId: string): Promise<void> {
  await tx.run("DELETE FROM task_review_inquiries WHERE review_id = ?", [reviewId]);
  await tx.run("DELETE FROM task_reviews WHERE review_id = ?", [reviewId]);
}

/**
 * Records that the result's author has received a question.
 *
 * @returns false if the question was recorded before
 */
export async function noteInquiry(tx: WriteTx, reviewId: string, number: number): Promise<boolean> {
  const { changes } = await tx.run(
    "INSERT INTO task_review_inquiries (review_id, number) VALUES (?, ?) ON CONFLICT DO NOTHING",
    [reviewId, number],
  );
  return changes === 1;
}

/**
 * Records an answer to every open question of a review.
 *
 * @returns the numbers of the questions that had no answer before
 */
export async function answerInquiries(tx: WriteTx, reviewId: string): Promise<number[]> {
  const rows = await tx.all(
    NUMBER_ROW,
    "SELECT number FROM task_review_inquiries WHERE review_id = ? AND answered = 0 ORDER BY number",
    [reviewId],
  );
  await tx.run("UPDATE task_review_inquiries SET answered = 1 WHERE review_id = ? AND answered = 0", [
    reviewId,
  ]);
  return rows.map(({ number }) => number);
}
