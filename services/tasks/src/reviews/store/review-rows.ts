import { integer, type ReadTx, row, text, type WriteTx } from "@depute/store";

/** The review of a result that a task holds. The verifier has the rest of it. */
export interface HeldReview {
  /** The verifier's id of the review, a UUID that was chosen here. */
  readonly reviewId: string;
  readonly taskId: string;
  /** How long the verifier waits for a decision, milliseconds. */
  readonly timeoutMs: number;
  /** 1 once the verifier has told of the escalation. */
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

/** The review of the result that a task holds now. */
export function reviewOfTask(tx: ReadTx, taskId: string): Promise<HeldReview | undefined> {
  return tx.get(ROW, `SELECT ${COLUMNS} FROM task_reviews WHERE task_id = ?`, [taskId]);
}

/** A review by its id; nothing once its result is held no more. */
export function readReview(tx: ReadTx, reviewId: string): Promise<HeldReview | undefined> {
  return tx.get(ROW, `SELECT ${COLUMNS} FROM task_reviews WHERE review_id = ?`, [reviewId]);
}

export async function noteEscalated(tx: WriteTx, reviewId: string): Promise<void> {
  await tx.run("UPDATE task_reviews SET escalated = 1 WHERE review_id = ?", [reviewId]);
}

export async function deleteReview(tx: WriteTx, reviewId: string): Promise<void> {
  await tx.run("DELETE FROM task_review_inquiries WHERE review_id = ?", [reviewId]);
  await tx.run("DELETE FROM task_reviews WHERE review_id = ?", [reviewId]);
}

/**
 * Notes a question of a reviewer as sent to the author of the result.
 *
 * @returns false for a question that was sent before
 */
export async function noteInquiry(tx: WriteTx, reviewId: string, number: number): Promise<boolean> {
  const { changes } = await tx.run(
    "INSERT INTO task_review_inquiries (review_id, number) VALUES (?, ?) ON CONFLICT DO NOTHING",
    [reviewId, number],
  );
  return changes === 1;
}

/** Notes that every question of a review is answered. @returns the numbers of those that were not */
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
