import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { freeSchema, ownPostgresForTests } from "@depute/store/testing";
import { amount, turns } from "../amount.ts";
import { type Apart, startApart } from "../apart.ts";
import type { Benchmark } from "../bench.ts";
import { startPlatform } from "../tasks/platform.ts";
import { inTurns } from "../turns.ts";
import { NAMES, type Question } from "./jobs.ts";

/**
 * Measures jobs from creation to completion on one Postgres whose commits wait for the disk: pg-boss, graphile-worker
 * and Depute, with 32 jobs in flight and one job a call. Each program's load has a process of its own; Depute's
 * services have one more, and calls to them pass gRPC. pg-boss and graphile-worker run inside their user's process, and
 * call the database directly. DEPUTE_POSTGRES_URL names another database.
 */

const IN_FLIGHT = 32;
const JOBS = amount(500);
const ROUNDS = turns(9);
const WARM_UP = amount(2_000);

export default async function benchmarks(): Promise<Benchmark[]> {
  const given = process.env.DEPUTE_POSTGRES_URL;
  const own = given ? undefined : await ownPostgresForTests("on");
  const url = given ?? own?.url;
  if (url === undefined) return [];
  return [
    inTurns({
      name: `create to complete on one Postgres, one job a call, ${IN_FLIGHT} in flight`,
      unit: "a second",
      rounds: ROUNDS,
      names: NAMES,
      quotients: [
        { name: "Depute, by pg-boss", of: "Depute", by: "pg-boss", atLeast: 0.5 },
        { name: "Depute, by graphile-worker", of: "Depute", by: "graphile-worker" },
        { name: "Depute in batches, by pg-boss", of: "Depute, in batches", by: "pg-boss" },
      ],
      start: () => start(url),
      close: () => own?.stop(),
    }),
  ];
}

async function start(url: string) {
  const env = { DEPUTE_POSTGRES_URL: url, DEPUTE_POSTGRES_SCHEMA_PREFIX: freeSchema().slice(0, 20) };
  const folder = mkdtempSync(join(tmpdir(), "depute-bench-"));
  const platform = await startPlatform(folder, env);
  const processes: Apart<object>[] = [];
  const players = [];
  for (const name of NAMES) {
    const address = name.startsWith("Depute") ? platform.address : url;
    const file = join(import.meta.dirname, "process.ts");
    const load = await startApart<object>(file, [name, address, String(IN_FLIGHT)]);
    processes.push(load);
    const run = async (jobs: number) =>
      (await load.ask<{ rate: number }>({ jobs, atOnce: IN_FLIGHT } satisfies Question)).rate;
    await run(WARM_UP);
    players.push({ name, round: () => run(JOBS) });
  }
  return {
    players,
    async stop() {
      for (const load of processes) await load.stop();
      await platform.close();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}
