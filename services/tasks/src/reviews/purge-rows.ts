import type { WriteTx } from "@depute/store";

/** Forgets the reviews of a task that is purged. */
export async function forgetReviews(tx: WriteTx, taskId: string): Promise<void> {
  await tx.run("DELETE FROM task_reviews WHERE task_id = ?", [taskId]);
  await tx.run("DELETE FROM task_review_inquiries WHERE task_id = ?", [taskId]);
}
