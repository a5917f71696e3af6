import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { freeSchema, ownPostgresForTests } from "@depute/store/testing";
import { amount, turns } from "../amount.ts";
import { startApart } from "../apart.ts";
import type { Benchmark } from "../bench.ts";
import type { Question } from "../queue/jobs.ts";
import { startPlatform } from "../tasks/platform.ts";
import { inTurns } from "../turns.ts";
import { cpuOf, cpuOfPostgres, dataDirectoryOf } from "./cpu.ts";

/**
 * Measures tasks from creation to completion with SQLite and with Postgres: one process of the services, commits that
 * wait for the disk in both, and one task a call. The load has a process of its own.
 */

const IN_FLIGHT = 48;
const TASKS = amount(2_000);
const WARM_UP = amount(4_000);
const ROUNDS = turns(7);
const SQLITE = "SQLite";
const POSTGRES = "Postgres";
const CPU = { [SQLITE]: "CPU with SQLite", [POSTGRES]: "CPU with Postgres", server: "CPU of Postgres" };
const LOAD = join(import.meta.dirname, "../queue/process.ts");

export default async function benchmarks(): Promise<Benchmark[]> {
  const postgres = await ownPostgresForTests("on");
  if (postgres === undefined) return [];
  const cpuMs = new Map<string, number>();
  return [
    inTurns({
      name: `create to complete, one task a call, ${IN_FLIGHT} in flight, flushed`,
      unit: "a second",
      rounds: ROUNDS,
      names: [SQLITE, POSTGRES],
      quotients: [{ name: "Postgres, by SQLite", of: POSTGRES, by: SQLITE, atLeast: 0.6 }],
      start: () => start(postgres, cpuMs),
      close: () => postgres.stop(),
    }),
    {
      name: "CPU of these tasks, the last round",
      figures: Object.values(CPU).map((name) => ({
        name,
        unit: "ms a task",
        measure: () => cpuMs.get(name) ?? Number.NaN,
      })),
    },
  ];
}

async function start(postgres: { readonly url: string }, cpuMs: Map<string, number>) {
  const folders: string[] = [];
  const stops: (() => Promise<unknown>)[] = [];
  const dataDirectory = await dataDirectoryOf(postgres.url);
  const open = async (name: typeof SQLITE | typeof POSTGRES, env: NodeJS.ProcessEnv) => {
    const folder = mkdtempSync(join(tmpdir(), "depute-bench-"));
    folders.push(folder);
    const platform = await startPlatform(folder, env);
    const load = await startApart<object>(LOAD, ["Depute", platform.address, String(IN_FLIGHT)]);
    stops.push(
      () => load.stop(),
      () => platform.close(),
    );
    const run = async (jobs: number) =>
      (await load.ask<{ rate: number }>({ jobs, atOnce: IN_FLIGHT } satisfies Question)).rate;
    await run(WARM_UP);
    return {
      name,
      async round() {
        const before = { depute: cpuOf(platform.pid), server: cpuOfPostgres(dataDirectory) };
        const rate = await run(TASKS);
        cpuMs.set(CPU[name], (cpuOf(platform.pid) - before.depute) / TASKS);
        if (name === POSTGRES) cpuMs.set(CPU.server, (cpuOfPostgres(dataDirectory) - before.server) / TASKS);
        return rate;
      },
    };
  };
  const schema = freeSchema().slice(0, 20);
  const players = [
    await open(SQLITE, { DEPUTE_POSTGRES_URL: "" }),
    await open(POSTGRES, { DEPUTE_POSTGRES_URL: postgres.url, DEPUTE_POSTGRES_SCHEMA_PREFIX: schema }),
  ];
  return {
    players,
    async stop() {
      for (const stop of stops) await stop();
      for (const folder of folders) rmSync(folder, { recursive: true, force: true });
    },
  };
}
