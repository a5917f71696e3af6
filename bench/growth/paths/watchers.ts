import { join } from "node:path";
import type { Lease } from "@depute/contracts/depute/tasks/v1/worker_service_pb";
import { startApart } from "../../apart.ts";
import { createTask, startPlatform, takeWork } from "../../tasks/platform.ts";
import { middleOf } from "../../turns.ts";
import { calls, type Path, sizes } from "../path.ts";
import type { Arrived, Question } from "./watchers-process.ts";

const REPORTS = 20;
const HEARTBEAT_MS = 5_000;
/**
 * Maximum number of watchers that connect at the same time. A heartbeat waits until they are connected. If that took
 * longer than the lease, the worker would lose its task.
 */
const TOGETHER = 500;
const LAST = "until the last watcher has the event";

/** Watchers of one task. They run in a separate process, with one connection for each thousand watchers. */
export const watchers: Path = {
  name: "watchers of one task",
  unit: "ms",
  sizes: sizes(100, 300, 1_000, 3_000, 10_000),
  lines: [LAST],
  async open() {
    const platform = await startPlatform();
    const load = await startApart(join(import.meta.dirname, "watchers-process.ts"), [platform.address]);
    const taken = Promise.withResolvers<Lease>();
    const stop = takeWork(platform, 1, taken.resolve);
    await createTask(platform);
    const lease = await taken.promise;
    stop();
    await platform.workers.startAssignment({ lease });
    // Heartbeats keep the lease while thousands of watchers connect, which may take longer than the lease.
    const beat = setInterval(() => {
      platform.workers.heartbeatAssignment({ lease }).catch((error: unknown) => console.error(error));
    }, HEARTBEAT_MS);
    let processed = 0;
    let connected = 0;
    const report = async () => {
      const watched = load.ask<Arrived>({ processed: ++processed } satisfies Question);
      const startMs = performance.timeOrigin + performance.now();
      await platform.workers.reportProgress({ lease, progress: { processed, message: "one more" } });
      return (await watched).lastMs - startMs;
    };
    return {
      async grow(size) {
        while (connected < size) {
          connected = Math.min(size, connected + TOGETHER);
          await load.ask({ taskId: lease.taskId, watchers: connected } satisfies Question);
        }
        for (let i = 0; i < 5; i++) await report();
      },
      async measure() {
        const times: number[] = [];
        while (times.length < calls(REPORTS)) times.push(await report());
        return middleOf(times);
      },
      async close() {
        clearInterval(beat);
        await load.stop();
        await platform.close();
      },
    };
  },
};
