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
port.postMessage({ ready: true } satisfies WorkerMessage);
