import { integer, oneOf, type ReadTx, row, text, type WriteTx } from "@depute/store";

/** A pending call to the verifier. */
export interface ReviewCall {
  readonly method: "create" | "answer" | "withdraw";
  readonly reviewId: string;
  readonly taskId: string;
  /** The number of the question that the call answers; 0 for a call of another method. */
  readonly number: number;
  readonly answer: string;
  readonly answeredBy: string;
}

/**
 * An outbox row: a pending call to the verifier, and its position. The outbox makes calls in the order of their
 * positions.
 */
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

/** Adds a call after all pending calls. */
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

/** Returns up to `limit` pending calls, the oldest first. */
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
