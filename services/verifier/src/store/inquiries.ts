import { integer, nullable, type ReadTx, row, text, type WriteTx } from "@depute/store";
import { type Inquiry, MAX_INQUIRIES } from "../rules/review.ts";

/** An inquiry, and the fields that only the store needs. */
export interface StoredInquiry extends Inquiry {
  requestId: string;
}

const ROW = row({
  number: integer,
  requestId: text,
  inquirer: text,
  text,
  createTime: integer,
  answer: nullable(text),
  answeredBy: nullable(text),
  answerTime: nullable(integer),
});

/** Returns the inquiries of a review, oldest first. */
export async function listInquiries(tx: ReadTx, reviewId: string): Promise<StoredInquiry[]> {
  const rows = await tx.all(
    ROW,
    `SELECT number, request_id AS "requestId", inquirer, text, create_ms AS "createTime", answer,
       answered_by AS "answeredBy", answer_ms AS "answerTime"
     FROM review_inquiries WHERE review_id = ? ORDER BY number LIMIT ?`,
    [reviewId, MAX_INQUIRIES],
  );
  return rows.map((row) => ({
    ...row,
    answer: row.answer ?? undefined,
    answeredBy: row.answeredBy ?? undefined,
    answerTime: row.answerTime ?? undefined,
  }));
}

export async function insertInquiry(tx: WriteTx, reviewId: string, inquiry: StoredInquiry): Promise<void> {
  const { number, requestId, inquirer, text, createTime } = inquiry;
  await tx.run(
    `INSERT INTO review_inquiries (review_id, number, request_id, inquirer, text, create_ms)
     VALUES (?, ?, ?, ?, ?, ?)`,
    [reviewId, number, requestId, inquirer, text, createTime],
  );
}

export async function updateInquiry(tx: WriteTx, reviewId: string, inquiry: Inquiry): Promise<void> {
  const { number, answer, answeredBy, answerTime } = inquiry;
  await tx.run(
    `UPDATE review_inquiries SET answer = ?, answered_by = ?, answer_ms = ? WHERE review_id = ? AND number = ?`,
    [answer ?? null, answeredBy ?? null, answerTime ?? null, reviewId, number],
  );
}
