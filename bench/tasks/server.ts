import { createServer } from "node:http2";
import type { AddressInfo } from "node:net";
import { connectNodeAdapter } from "@connectrpc/connect-node";
import { startPlatform } from "@depute/cli";
import { TaskService } from "@depute/contracts/depute/tasks/v1/task_service_pb";
import { eventOf } from "./events.ts";

/**
 * The tasks service with the services that it asks, as a process of its own: started with its data folder, or with `bare`
 * for the yardstick. Tells its addresses, and then answers each message with the memory that it takes, in bytes.
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

/** A Connect server as it comes, that streams the same messages to whoever asks: no store, no checks, no order to keep. */
function startBare(): Promise<{ tasks: string }> {
  const server = createServer(
    connectNodeAdapter({
      routes(router) {
        router.service(TaskService, {
          async *watchTask({ afterSequence }) {
            for (let i = 1; i <= Number(afterSequence); i++) yield { event: eventOf(i) };
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
