import type { Task } from "@depute/contracts/depute/tasks/v1/task_pb";
import type { Review, ReviewVerdict } from "@depute/contracts/depute/verifier/v1/review_service_pb";
import { LOCAL_PRINCIPAL } from "@depute/service";
import type { Bench } from "./bench.ts";

/** Maximum number of turns of the event loop that a test waits for background work. */
const MAX_TURNS = 10_000;

/** Waits until `find` returns a value, without advancing the clock. */
export async function until<T>(bench: Bench, find: () => Promise<T | undefined>): Promise<T> {
  for (let turn = 0; turn < MAX_TURNS; turn++) {
    const result = await find();
    if (result !== undefined) return result;
    await bench.pass(0);
    await new Promise((resolve) => setImmediate(resolve));
  }
  throw new Error("it has not come");
}

/** Waits until the verifier has a review of the task. Returns the newest review. */
export function reviewOf(bench: Bench, taskId: string): Promise<Review> {
  return until(bench, async () =>
    [...bench.fakes.reviews.all.values()].findLast(({ subject }) => subject === taskId),
  );
}

/**
 * Decides a held result as the overseer of its task. Returns the changed task.
 *
 * @throws DeputeError TASK_STATE_CONFLICT and the verifier's refusals
 */
export async function decide(
  { runtime }: Bench,
  taskId: string,
  verdict: ReviewVerdict,
  comment = "because",
): Promise<Task> {
  const { engine, context } = runtime;
  const decision = { verdict, comment };
  const reviewer = (await context.engine.find(taskId))?.overseerPrincipal || LOCAL_PRINCIPAL;
  await engine.reviews.decide(taskId, decision, reviewer, {}, () =>
    engine.store.write((tx) => engine.decide(tx, taskId, decision, false)),
  );
  const record = await context.engine.find(taskId);
  if (record === undefined) throw new Error("the task is gone");
  return record.task;
}
