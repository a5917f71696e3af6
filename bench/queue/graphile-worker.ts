import { EventEmitter } from "node:events";
import { createRequire } from "node:module";
import { join } from "node:path";
import { onDemand } from "../../tools/on-demand.ts";
import { inFlight } from "../in-flight.ts";
import type { Jobs } from "./jobs.ts";

/** What this file uses of graphile-worker. */
interface Library {
  Logger: new (factory: () => () => void) => object;
  run(options: object): Promise<{ addJob(task: string, payload: object): Promise<{ id: string }> }>;
}

/**
 * One job a call: `addJob` for each job, and a worker that fetches and completes each job by calls of its own. NOTIFY
 * wakes the worker. Its defaults hold, except for concurrency, connections and logs.
 */
export async function graphileWorker(connectionString: string, connections: number): Promise<Jobs> {
  const require = createRequire(join(onDemand("peers"), "graphile-worker/dist/index.js"));
  const { run, Logger } = require("./index.js") as Library;
  const events = new EventEmitter();
  const waiting = new Map<string, () => void>();
  const early = new Set<string>();
  events.on("job:complete", ({ job: { id } }: { job: { id: string } }) => {
    const resolve = waiting.get(id);
    if (resolve === undefined) early.add(id);
    else resolve();
  });
  const runner = await run({
    connectionString,
    concurrency: connections,
    maxPoolSize: connections,
    noHandleSignals: true,
    logger: new Logger(() => () => {}),
    events,
    taskList: { words: async () => {} },
  });
  return {
    run: (jobs, atOnce) =>
      inFlight(jobs, atOnce, async () => {
        const { id } = await runner.addJob("words", { description: "count words" });
        if (!early.delete(id)) await new Promise<void>((resolve) => waiting.set(id, resolve));
        waiting.delete(id);
      }),
  };
}
