import { postgresForTests } from "@depute/store/testing";
import { Stage } from "../../tests/tasks/stage.ts";
import { amount } from "../amount.ts";
import type { Benchmark } from "../bench.ts";
import { cpuOf, cpuOfPostgres, dataDirectoryOf } from "./cpu.ts";
import { replicaRunner } from "./runner.ts";

/**
 * Measures the CPU time of tasks from creation to completion at 1, 2 and 3 replicas of the tasks service on one Postgres,
 * at equal load: 48 tasks in flight over 24 agents, each with a worker's stream at each replica. The clients call by gRPC.
 * CPU times of the replicas and of Postgres are user and system times from /proc, so the benchmark needs Linux.
 */

const REPLICAS = [1, 2, 3];
const IN_FLIGHT = 48;
const AGENTS = 24;
/** Number of warm-up tasks of each replica, so that each has compiled its code. */
const WARM_UP = Number(process.env.DEPUTE_BENCH_WARM_UP ?? amount(8_000));
const TASKS = Number(process.env.DEPUTE_BENCH_TASKS ?? amount(4_000, 100));

interface Measured {
  readonly deputeMs: number;
  readonly postgresMs: number;
  readonly rate: number;
}

export default async function benchmarks(): Promise<Benchmark[]> {
  const postgres = await postgresForTests();
  if (postgres === undefined) return [];
  const { url } = postgres;
  const measured = new Map<number, Measured>();
  const at = async (count: number) => {
    const known = measured.get(count) ?? (await measureAt(url, count));
    measured.set(count, known);
    return known;
  };
  const label = (count: number) => (count === 1 ? "1 replica" : `${count} replicas`);
  return [
    {
      name: `create to complete, ${IN_FLIGHT} in flight, ${TASKS} tasks`,
      figures: [
        ...REPLICAS.flatMap((count) => [
          {
            name: `CPU of ${label(count)}`,
            unit: "ms a task",
            measure: async () => (await at(count)).deputeMs,
          },
          {
            name: `CPU of Postgres, ${label(count)}`,
            unit: "ms a task",
            measure: async () => (await at(count)).postgresMs,
          },
          { name: `tasks, ${label(count)}`, unit: "a second", measure: async () => (await at(count)).rate },
        ]),
        {
          name: "CPU of 3 replicas against 1",
          unit: "%",
          atMost: 125,
          measure: async () => (100 * (await at(3)).deputeMs) / (await at(1)).deputeMs,
        },
      ],
      close: () => postgres.stop(),
    },
  ];
}

async function measureAt(url: string, count: number): Promise<Measured> {
  const dataDirectory = await dataDirectoryOf(url);
  const stage = await Stage.open(url, count);
  try {
    const agentIds: string[] = [];
    for (let n = 0; n < AGENTS; n++) agentIds.push(await stage.agent());
    const runner = replicaRunner(
      stage.replicas.map((replica) => replica.url.replace("http://", "")),
      agentIds,
    );
    await runner.run(count * WARM_UP, IN_FLIGHT);
    const deputeCpu = () => stage.replicas.reduce((sum, { process: { pid } }) => sum + cpuOf(pid), 0);
    const before = { depute: deputeCpu(), postgres: cpuOfPostgres(dataDirectory) };
    const rate = await runner.run(TASKS, IN_FLIGHT);
    const deputeMs = (deputeCpu() - before.depute) / TASKS;
    const postgresMs = (cpuOfPostgres(dataDirectory) - before.postgres) / TASKS;
    runner.close();
    return { deputeMs, postgresMs, rate };
  } finally {
    stage.close();
  }
}
