import type { ReadTx, WriteTx } from "@depute/store";

/** An answer that the queue is to be told. */
export interface AnswerRow {
  readonly reviewKey: string;
  readonly number: number;
  readonly answer: string;
  readonly answeredBy: string;
}

/**
 * Keeps a question of a reviewer's.
 *
 * @returns whether it was not known
 */
export async function insertInquiry(
  tx: WriteTx,
  { reviewKey, taskId }: { readonly reviewKey: string; readonly taskId: string },
  number: number,
): Promise<boolean> {
  const { changes } = await tx.run(
    "INSERT INTO task_review_inquiries (review_key, number, task_id) VALUES (?, ?, ?) ON CONFLICT DO NOTHING",
    [reviewKey, number, taskId],
  );
  return changes === 1;
}

/** Answers every question of a review that was not answered. @returns how many */
export async function answerInquiries(
  tx: WriteTx,
  reviewKey: string,
  answer: string,
  answeredBy: string,
): Promise<number> {
  const { changes } = await tx.run(
    `UPDATE task_review_inquiries SET answer = ?, answered_by = ?, place = (
       SELECT COALESCE(MAX(other.place), 0) + 1 FROM task_review_inquiries AS other WHERE other.place IS NOT NULL)
     WHERE review_key = ? AND answer = ''`,
    [answer, answeredBy, reviewKey],
  );
  return changes;
}

/** Up to so many answers that the queue was not told, the first of them first. */
export async function firstAnswers(tx: ReadTx, limit: number): Promise<AnswerRow[]> {
  return tx.all(
    `SELECT review_key AS "reviewKey", number, answer, answered_by AS "answeredBy"
     FROM task_review_inquiries WHERE place IS NOT NULL ORDER BY place, number LIMIT ?`,
    [limit],
  );
}

export async function dropAnswer(tx: WriteTx, { reviewKey, number }: AnswerRow): Promise<void> {
  await tx.run("UPDATE task_review_inquiries SET place = NULL WHERE review_key = ? AND number = ?", [
    reviewKey,
    number,
  ]);
}
