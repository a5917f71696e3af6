import type { Client } from "@connectrpc/connect";
import type { TaskService } from "@depute/contracts/depute/tasks/v1/task_service_pb";
import type { Lease, WorkerService } from "@depute/contracts/depute/tasks/v1/worker_service_pb";
import type { Store } from "@depute/store";
import { atPace } from "../at-pace.ts";
import { REPORT } from "./events.ts";

/** Clients of a server, and work that has begun there. */
export interface Reporting {
  readonly tasks: Pick<Client<typeof TaskService>, "watchTask">;
  readonly workers: Pick<Client<typeof WorkerService>, "reportProgress">;
  readonly leases: readonly Pick<Lease, "taskId" | "epoch">[];
}

/** A load of progress reports at a fixed rate, spread evenly over the tasks. */
export interface Pace {
  readonly perSecond: number;
  readonly seconds: number;
  /** Seconds at the beginning whose reports are not counted. */
  readonly warmUpSeconds: number;
}

/**
 * Returns the 99th percentile of the time in milliseconds from a report's call to its arrival at the task's watcher.
 * Measured values stay in arrays, because a garbage collection in this process would add to the time.
 */
export async function reportDelayP99(
  { tasks, workers, leases }: Reporting,
  { perSecond, seconds, warmUpSeconds }: Pace,
): Promise<number> {
  const reports = Math.ceil(perSecond * (warmUpSeconds + seconds));
  const sentMs = new Float64Array(reports);
  const tookMs = new Float64Array(reports);
  const stopping = new AbortController();
  const all = Promise.withResolvers<void>();
  let arrived = 0;
  const watching = leases.map(async ({ taskId }) => {
    for await (const { taskEvent: event } of tasks.watchTask({ taskId }, { signal: stopping.signal })) {
      if (event?.payload.case !== "progress") continue;
      const { processed } = event.payload.value;
      // An event may repeat, or arrive from an earlier round. Such an event does not count.
      if (tookMs[processed] !== 0 || sentMs[processed] === 0) continue;
      tookMs[processed] = performance.now() - (sentMs[processed] ?? 0);
      if (++arrived === reports) all.resolve();
    }
  });
  await atPace(perSecond, reports, (processed) => {
    sentMs[processed] = performance.now();
    const lease = leases[processed % leases.length] as Lease;
    return workers.reportProgress({ lease, progress: { processed, message: REPORT } });
  });
  await all.promise;
  stopping.abort();
  await Promise.allSettled(watching);
  return p99(tookMs.slice(Math.floor(perSecond * warmUpSeconds)));
}

/** Returns the 99th percentile of the milliseconds of one flushed append, at the same pace. */
export async function appendP99(store: Store, { perSecond, seconds, warmUpSeconds }: Pace): Promise<number> {
  const appends = Math.ceil(perSecond * (warmUpSeconds + seconds));
  const tookMs = new Float64Array(appends);
  const value = new Uint8Array(300);
  await atPace(perSecond, appends, async (i) => {
    const startMs = performance.now();
    await store.write((tx) => tx.run("INSERT INTO rows (value) VALUES (?)", [value]));
    tookMs[i] = performance.now() - startMs;
  });
  return p99(tookMs.slice(Math.floor(perSecond * warmUpSeconds)));
}

function p99(times: Float64Array): number {
  return times.sort()[Math.floor(times.length * 0.99)] ?? Number.NaN;
}
