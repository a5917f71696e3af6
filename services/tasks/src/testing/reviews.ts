import type { Task } from "@depute/contracts/depute/tasks/v1/task_pb";
import type { Review, ReviewVerdict } from "@depute/contracts/depute/verifier/v1/review_service_pb";
import { LOCAL_PRINCIPAL } from "@depute/service";
import type { Bench } from "./bench.ts";

/** Turns of the event loop that something in the background may take. */
const MAX_TURNS = 10_000;

/** Waits for what goes on in the background, while the clock stands still. */
export async function until<T>(bench: Bench, find: () => Promise<T | undefined>): Promise<T> {
  for (let turn = 0; turn < MAX_TURNS; turn++) {
    const found = await find();
    if (found !== undefined) return found;
    await bench.pass(0);
    await new Promise((resolve) => setImmediate(resolve));
  }
  throw new Error("it has not come");
}

/** The newest review of a task, once the verifier has it. */
export function reviewOf(bench: Bench, taskId: string): Promise<Review> {
  return until(bench, async () =>
    [...bench.fakes.reviews.all.values()].findLast(({ subject }) => subject === taskId),
  );
}

/**
 * Decides as the overseer of a task, in a call that is answered once the task has moved on.
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
