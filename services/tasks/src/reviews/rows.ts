import type { ReadTx, WriteTx } from "@depute/store";

/** What the queue of reviews is owed: the values of the column `todo`. */
export const OWED = { NOTHING: 0, CREATE: 1, WITHDRAW: 2 } as const;

/** A review of a held result, as this service knows it. */
export interface ReviewRow {
  /** Names the review to the queue: the task and the place of its submission in the log. */
  readonly reviewKey: string;
  readonly taskId: string;
  /** The queue's id; empty until it gave one. */
  readonly reviewId: string;
  readonly isOpen: boolean;
  /** Epoch milliseconds. */
  readonly escalateMs: number;
  readonly deadlineMs: number;
  readonly todo: number;
}

interface Row {
  review_key: string;
  task_id: string;
  review_id: string;
  is_open: number;
  escalate_ms: number;
  deadline_ms: number;
  todo: number;
}

const COLUMNS = "review_key, task_id, review_id, is_open, escalate_ms, deadline_ms, todo";

/** Keeps a review that the queue is to be told of. */
export async function insertReview(
  tx: WriteTx,
  review: Pick<ReviewRow, "reviewKey" | "taskId" | "escalateMs" | "deadlineMs">,
): Promise<void> {
  await tx.run(
    `INSERT INTO task_reviews (review_key, task_id, escalate_ms, deadline_ms, place)
     SELECT ?, ?, ?, ?, COALESCE(MAX(place), 0) + 1 FROM task_reviews WHERE place IS NOT NULL`,
    [review.reviewKey, review.taskId, review.escalateMs, review.deadlineMs],
  );
}

/** The review of the result that a task holds now. */
export async function openReview(tx: ReadTx, taskId: string): Promise<ReviewRow | undefined> {
  const row = await tx.get<Row>(`SELECT ${COLUMNS} FROM task_reviews WHERE task_id = ? AND is_open = 1`, [
    taskId,
  ]);
  return row && toReview(row);
}

export async function readReview(tx: ReadTx, reviewKey: string): Promise<ReviewRow | undefined> {
  const row = await tx.get<Row>(`SELECT ${COLUMNS} FROM task_reviews WHERE review_key = ?`, [reviewKey]);
  return row && toReview(row);
}

/** A review by the queue's id. */
export async function findReview(tx: ReadTx, reviewId: string): Promise<ReviewRow | undefined> {
  const row = await tx.get<Row>(`SELECT ${COLUMNS} FROM task_reviews WHERE review_id = ?`, [reviewId]);
  return row && toReview(row);
}

/** Up to so many reviews of which there is something to tell, the first of them first. */
export async function firstToTell(tx: ReadTx, limit: number): Promise<ReviewRow[]> {
  const rows = await tx.all<Row>(
    `SELECT ${COLUMNS} FROM task_reviews WHERE place IS NOT NULL ORDER BY place LIMIT ?`,
    [limit],
  );
  return rows.map(toReview);
}

/** Notes what the queue said when the review was created there. */
export async function noteCreated(
  tx: WriteTx,
  reviewKey: string,
  { reviewId, escalateMs, deadlineMs }: Pick<ReviewRow, "reviewId" | "escalateMs" | "deadlineMs">,
): Promise<void> {
  await tx.run(
    "UPDATE task_reviews SET review_id = ?, escalate_ms = ?, deadline_ms = ? WHERE review_key = ?",
    [reviewId, escalateMs, deadlineMs, reviewKey],
  );
}

/** Notes that what was to be told was told, unless there is something else to tell by now. */
export async function noteTold(tx: WriteTx, { reviewKey, todo }: ReviewRow): Promise<void> {
  await tx.run("UPDATE task_reviews SET todo = 0, place = NULL WHERE review_key = ? AND todo = ?", [
    reviewKey,
    todo,
  ]);
}

/** Closes the review of a task, which may leave something to tell. */
export async function closeReview(tx: WriteTx, { reviewKey }: ReviewRow, withdraws: boolean): Promise<void> {
  if (!withdraws) {
    await tx.run("UPDATE task_reviews SET is_open = 0 WHERE review_key = ?", [reviewKey]);
    return;
  }
  await tx.run(
    `UPDATE task_reviews SET is_open = 0, todo = 2, place = (
       SELECT COALESCE(MAX(other.place), 0) + 1 FROM task_reviews AS other WHERE other.place IS NOT NULL)
     WHERE review_key = ?`,
    [reviewKey],
  );
}

/** Reviews whose time is over, the longest overdue first. */
export async function overdueReviews(tx: ReadTx, nowMs: number, limit: number): Promise<ReviewRow[]> {
  const rows = await tx.all<Row>(
    `SELECT ${COLUMNS} FROM task_reviews WHERE is_open = 1 AND deadline_ms <= ? ORDER BY deadline_ms LIMIT ?`,
    [nowMs, limit],
  );
  return rows.map(toReview);
}

/** Reviews that have waited so long that others may decide, and nobody was told yet. */
export async function escalatingReviews(tx: ReadTx, nowMs: number, limit: number): Promise<ReviewRow[]> {
  const rows = await tx.all<Row>(
    `SELECT ${COLUMNS} FROM task_reviews WHERE is_open = 1 AND escalated = 0 AND escalate_ms <= ?
     ORDER BY escalate_ms LIMIT ?`,
    [nowMs, limit],
  );
  return rows.map(toReview);
}

export async function noteEscalated(tx: WriteTx, reviewKey: string): Promise<void> {
  await tx.run("UPDATE task_reviews SET escalated = 1 WHERE review_key = ?", [reviewKey]);
}

/** When the next review escalates or is over, epoch milliseconds. */
export async function nextReviewTime(tx: ReadTx): Promise<number | undefined> {
  const over = await tx.get<{ at: number | null }>(
    "SELECT MIN(deadline_ms) AS at FROM task_reviews WHERE is_open = 1",
  );
  const escalates = await tx.get<{ at: number | null }>(
    "SELECT MIN(escalate_ms) AS at FROM task_reviews WHERE is_open = 1 AND escalated = 0",
  );
  const times = [over?.at, escalates?.at].filter((at) => typeof at === "number");
  return times.length === 0 ? undefined : Math.min(...times);
}

function toReview(row: Row): ReviewRow {
  return {
    reviewKey: row.review_key,
    taskId: row.task_id,
    reviewId: row.review_id,
    isOpen: row.is_open === 1,
    escalateMs: row.escalate_ms,
    deadlineMs: row.deadline_ms,
    todo: row.todo,
  };
}
