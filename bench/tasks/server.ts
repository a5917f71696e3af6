import { EventEmitter, on } from "node:events";
import { createServer } from "node:http2";
import type { AddressInfo } from "node:net";
import { connectNodeAdapter } from "@connectrpc/connect-node";
import { TaskService } from "@depute/contracts/depute/tasks/v1/task_service_pb";
import { WorkerService } from "@depute/contracts/depute/tasks/v1/worker_service_pb";
import { startPlatform } from "depute";
import { eventOf } from "./events.ts";

/**
 * Runs the tasks service and its dependencies in a separate process. The argument is the data folder, or `bare` for the
 * reference. The process reports its addresses and answers each message with its memory in bytes.
 */

const [folder = ""] = process.argv.slice(2);
process.on("disconnect", () => process.exit());
process.on("message", () => {
  globalThis.gc?.();
  process.send?.({ rss: process.memoryUsage().rss });
});
process.send?.(folder === "bare" ? await startBare() : await startDepute());

async function startDepute() {
  const { host } = await startPlatform({
    modules: ["tokens", "verifier", "registry", "tasks"],
    listen: ["registry", "tasks"],
    args: ["--data-dir", folder, "--registry-port", "0", "--tasks-port", "0", "--log-level", "error"],
    name: "bench",
    description: "",
  });
  const { registry = "", tasks = "" } = host.urls;
  return { registry: new URL(registry).host, tasks: new URL(tasks).host };
}

/**
 * Starts a plain Connect server that streams the same messages to every client, without store, checks or order. A watch
 * request with `afterSequence` gets so many events at once. A watcher without `afterSequence` gets an event for each
 * report of its task.
 */
function startBare(): Promise<{ tasks: string }> {
  const reports = new EventEmitter();
  const server = createServer(
    connectNodeAdapter({
      routes(router) {
        router.service(TaskService, {
          async *watchTask({ taskId, afterSequence }, { signal }) {
            for (let i = 1; i <= Number(afterSequence); i++) yield { taskEvent: eventOf(i) };
            if (afterSequence > 0n) return;
            for await (const [processed] of on(reports, taskId, { signal })) {
              yield { taskEvent: eventOf(processed as number) };
            }
          },
        });
        router.service(WorkerService, {
          reportProgress({ lease, progress }) {
            reports.emit(lease?.taskId ?? "", progress?.processed ?? 0);
            return {};
          },
        });
      },
    }),
  );
  return new Promise((resolve) => {
    server.listen(0, "127.0.0.1", () => {
      resolve({ tasks: `127.0.0.1:${(server.address() as AddressInfo).port}` });
    });
  });
}
