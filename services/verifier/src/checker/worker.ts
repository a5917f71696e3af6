/** The entry of a worker thread: it answers jobs one after the other. What stops it is its owner's business (pool.ts). */
import { setPriority } from "node:os";
import { parentPort, workerData } from "node:worker_threads";
import type { Answer, Job, WorkerMessage, WorkerRequest, WorkerSetup } from "./jobs.ts";
import { loadChecks } from "./more-checks.ts";
import { JobRunner } from "./run-job.ts";

/** How much later than others this thread gets its turn: 0 is like everybody, 19 last. */
const NICE = 10;

if (parentPort === null) throw new Error("worker.ts runs as a worker thread");
const port = parentPort;
const { progress, checks } = workerData as WorkerSetup;
const runner = new JobRunner(await loadChecks(checks));

// On Linux this is the priority of a thread: where there are more of them than processors, calls go first. Elsewhere it
// would be that of the whole process.
if (process.platform === "linux") setPriority(0, NICE);

port.on("message", ({ id, jobs }: WorkerRequest) => {
  const answers = jobs.map((job, place) => {
    // Whoever stops this thread sees which job it was that did not end.
    Atomics.store(progress, 0, place);
    return answer(job);
  });
  port.postMessage({ id, answers } satisfies WorkerMessage);
});

function answer(job: Job): Answer {
  const start = performance.now();
  try {
    const result = runner.run(job);
    return { result, ms: performance.now() - start };
  } catch (error) {
    const failure = error instanceof Error ? `${error.name}: ${error.message}` : String(error);
    return { failure, ms: performance.now() - start };
  }
}

// Loads and compiles what every check needs, so that the first one in this thread is not the slow one.
for (const dialect of ["draft-07", "2020-12"] as const) {
  const schema = JSON.stringify({ type: "object", properties: { a: { type: "string", pattern: "^a" } } });
  runner.run({ kind: "validate", dialect, schema, value: '{"a":"a"}' });
}
port.postMessage({ ready: true } satisfies WorkerMessage);
