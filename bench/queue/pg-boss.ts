import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { onDemand } from "../../tools/on-demand.ts";
import { inFlight } from "../in-flight.ts";
import type { Jobs } from "./jobs.ts";

const QUEUE = "words";

/** What this file uses of pg-boss. */
interface Library {
  PgBoss: new (
    options: object,
  ) => {
    start(): Promise<unknown>;
    on(event: "error", listener: (error: Error) => void): void;
    createQueue(name: string): Promise<void>;
    send(name: string, data: object): Promise<string | null>;
    fetch(name: string, options: { batchSize: number }): Promise<{ id: string }[]>;
    complete(name: string, id: string, data: object): Promise<unknown>;
  };
}

/**
 * One job a call: each job is sent, fetched and completed by a call of its own. A fetch follows each send at once,
 * so that no polling interval counts.
 */
export async function pgBoss(connectionString: string, connections: number): Promise<Jobs> {
  const file = join(onDemand("peers"), "pg-boss/dist/index.js");
  const { PgBoss } = (await import(pathToFileURL(file).href)) as Library;
  const boss = new PgBoss({ connectionString, schema: "pgboss", max: connections });
  boss.on("error", (error) => console.error(error));
  await boss.start();
  await boss.createQueue(QUEUE);
  const fetchOne = async () => {
    for (;;) {
      const [job] = await boss.fetch(QUEUE, { batchSize: 1 });
      if (job !== undefined) return job;
    }
  };
  return {
    run: (jobs, atOnce) =>
      inFlight(jobs, atOnce, async () => {
        await boss.send(QUEUE, { description: "count words" });
        const { id } = await fetchOne();
        await boss.complete(QUEUE, id, { words: 3 });
      }),
  };
}
