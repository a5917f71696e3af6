/** The entry of a worker thread: it answers jobs one after the other. What stops it is its owner's business (pool.ts). */
import { parentPort } from "node:worker_threads";
import type { WorkerMessage, WorkerRequest } from "./jobs.ts";
import { JobRunner } from "./run-job.ts";

if (parentPort === null) throw new Error("worker.ts runs as a worker thread");
const port = parentPort;
const runner = new JobRunner();

port.on("message", ({ id, job }: WorkerRequest) => {
  let answer: WorkerMessage;
  try {
    answer = { id, result: runner.run(job) };
  } catch (error) {
    answer = { id, failure: error instanceof Error ? `${error.name}: ${error.message}` : String(error) };
  }
  port.postMessage(answer);
});
// Loads and compiles what every check needs, so that the first one in this thread is not the slow one.
for (const dialect of ["draft-07", "2020-12"] as const) {
  const schema = JSON.stringify({ type: "object", properties: { a: { type: "string", pattern: "^a" } } });
  runner.run({ kind: "validate", dialect, schema, value: '{"a":"a"}' });
}
port.postMessage({ ready: true } satisfies WorkerMessage);
