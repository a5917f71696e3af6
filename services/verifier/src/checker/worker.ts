/** Entry point of a worker thread, which runs jobs one after the other. The pool enforces the limits (pool.ts). */
import { setPriority } from "node:os";
import { parentPort, workerData } from "node:worker_threads";
import { threadCpuMs } from "@depute/core";
import type { Answer, Job, WorkerMessage, WorkerRequest, WorkerSetup } from "./jobs.ts";
import { loadChecks } from "./more-checks.ts";
import { JobRunner } from "./run-job.ts";

/** Scheduling priority of this thread: 0 is normal, 19 the lowest. */
const NICE = 10;

if (parentPort === null) throw new Error("worker.ts must run as a worker thread");
const port = parentPort;
const { progress, checks } = workerData as WorkerSetup;
const runner = new JobRunner(await loadChecks(checks));

// On Linux the priority applies to this thread only, and the event loop's thread keeps its higher priority. On other
// systems the priority would apply to the whole process.
if (process.platform === "linux") setPriority(0, NICE);

port.on("message", ({ id, jobs }: WorkerRequest) => {
  const answers = jobs.map((job, place) => {
    // After the pool has stopped this thread, the pool reads here which job of the request was running.
    Atomics.store(progress, 0, place);
    return answer(job);
  });
  port.postMessage({ id, answers, usedMs: threadCpuMs() } satisfies WorkerMessage);
});

function answer(job: Job): Answer {
  const start = performance.now();
  const startCpuMs = threadCpuMs();
  const times = () => ({ ms: performance.now() - start, cpuMs: threadCpuMs() - startCpuMs });
  try {
    return { result: runner.run(job), ...times() };
  } catch (error) {
    const failure = error instanceof Error ? `${error.name}: ${error.message}` : String(error);
    return { failure, ...times() };
  }
}

// Runs the validators once, so that the first job of the thread is not slow.
for (const dialect of ["draft-07", "2020-12"] as const) {
  const schema = JSON.stringify({ type: "object", properties: { a: { type: "string", pattern: "^a" } } });
  runner.run({ kind: "validate", dialect, schema, value: '{"a":"a"}' });
}
port.postMessage({ ready: true, usedMs: threadCpuMs() } satisfies WorkerMessage);
