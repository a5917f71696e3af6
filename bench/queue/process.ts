import { taskRunner } from "../tasks/complete-tasks.ts";
import { graphileWorker } from "./graphile-worker.ts";
import type { Jobs, Name, Question } from "./jobs.ts";
import { pgBoss } from "./pg-boss.ts";

/**
 * Creates and does jobs in a separate process. The arguments are the program's name, the address of the database or of
 * the tasks service, and the number of connections. The process answers each message with jobs per second.
 */

const [name, address = "", connections = "32"] = process.argv.slice(2);

const START: Record<Name, () => Jobs | Promise<Jobs>> = {
  "pg-boss": () => pgBoss(address, Number(connections)),
  "graphile-worker": () => graphileWorker(address, Number(connections)),
  Depute: () => depute("one by one"),
  "Depute, in batches": () => depute("together"),
};

function depute(how: "one by one" | "together"): Jobs {
  const runner = taskRunner({ address }, how, how);
  return {
    async run(jobs, atOnce) {
      await runner.run(jobs, atOnce);
    },
  };
}

const jobs = await START[name as Name]();
process.on("disconnect", () => process.exit());
process.on("message", async ({ jobs: count, atOnce }: Question) => {
  const startMs = performance.now();
  await jobs.run(count, atOnce);
  process.send?.({ rate: (count * 1000) / (performance.now() - startMs) });
});
process.send?.({});
