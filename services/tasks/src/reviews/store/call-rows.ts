import { integer, oneOf, type ReadTx, row, text, type WriteTx } from "@depute/store";

/** A call that the verifier is owed. */
export interface ReviewCall {
  readonly method: "create" | "answer" | "withdraw";
  readonly reviewId: string;
  readonly taskId: string;
  /** Of the inquiry that is answered; 0 for the other methods. */
  readonly number: number;
  readonly answer: string;
  readonly answeredBy: string;
}

/** An outbox row: a call that the verifier is owed, and its position. Calls are made in the order of positions. */
export interface ReviewCallRow extends ReviewCall {
  readonly place: number;
}

const ROW = row({
  place: integer,
  method: oneOf<ReviewCall["method"]>("create", "answer", "withdraw"),
  reviewId: text,
  taskId: text,
  number: integer,
  answer: text,
  answeredBy: text,
});

/** Puts a call behind those that are owed already. */
export async function insertCall(
  tx: WriteTx,
  {
    method,
    reviewId,
    taskId,
    number = 0,
    answer = "",
    answeredBy = "",
  }: Pick<ReviewCall, "method" | "reviewId" | "taskId"> & Partial<ReviewCall>,
): Promise<void> {
  await tx.run(
    `INSERT INTO task_review_calls (place, method, review_id, task_id, number, answer, answered_by)
     SELECT COALESCE(MAX(place), 0) + 1, ?, ?, ?, ?, ?, ? FROM task_review_calls`,
    [method, reviewId, taskId, number, answer, answeredBy],
  );
}

/** Up to so many calls that are owed, the first of them first. */
export function firstCalls(tx: ReadTx, limit: number): Promise<ReviewCallRow[]> {
  return tx.all(
    ROW,
    `SELECT place, method, review_id AS "reviewId", task_id AS "taskId", number, answer, answered_by AS "answeredBy"
     FROM task_review_calls ORDER BY place LIMIT ?`,
    [limit],
  );
}

export async function deleteCall(tx: WriteTx, { place }: ReviewCallRow): Promise<void> {
  await tx.run("DELETE FROM task_review_calls WHERE place = ?", [place]);
}
