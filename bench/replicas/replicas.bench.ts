import { postgresForTests } from "@depute/store/testing";
import { Stage } from "../../tests/tasks/stage.ts";
import { amount } from "../amount.ts";
import type { Benchmark, Figure } from "../bench.ts";
import { cpuOf, cpuOfPostgres, dataDirectoryOf } from "./cpu.ts";
import { replicaRunner } from "./runner.ts";

/**
 * Measures the CPU time of tasks from creation to completion at 1, 2 and 3 replicas of the tasks service on one Postgres,
 * over 24 agents, each with a worker's stream at each replica. The clients call by gRPC. Two loads are measured. In the
 * first, 48 tasks are in flight, so fewer replicas complete more tasks a second and share more commits. In the second,
 * which is equal for all numbers of replicas, tasks arrive at half the rate that one replica reached in the first.
 * CPU times of the replicas and of Postgres are user and system times from /proc, so the benchmark needs Linux.
 */

const REPLICAS = [1, 2, 3];
const IN_FLIGHT = 48;
const AGENTS = 24;
/** Number of warm-up tasks of each replica, so that each has compiled its code. */
const WARM_UP = Number(process.env.DEPUTE_BENCH_WARM_UP ?? amount(8_000));
const TASKS = Number(process.env.DEPUTE_BENCH_TASKS ?? amount(4_000, 100));

interface Cost {
  /** CPU time of all replicas of the tasks service, and of Postgres, in milliseconds a task. */
  readonly deputeMs: number;
  readonly postgresMs: number;
  /** Tasks per second. */
  readonly rate: number;
}

/** The costs under the two loads: a number of tasks in flight, and the equal rate. */
interface Measured {
  readonly full: Cost;
  readonly equal: Cost;
}

type Load = keyof Measured;

export default async function benchmarks(): Promise<Benchmark[]> {
  const postgres = await postgresForTests();
  if (postgres === undefined) return [];
  const { url } = postgres;
  const measured = new Map<number, Measured>();
  const at = async (count: number): Promise<Measured> => {
    const equalRate = count === 1 ? undefined : (await at(1)).full.rate / 2;
    const known = measured.get(count) ?? (await measureAt(url, count, equalRate));
    measured.set(count, known);
    return known;
  };
  const label = (count: number) => (count === 1 ? "1 replica" : `${count} replicas`);
  const figuresOf = (load: Load, atMost?: number): Figure[] => [
    ...REPLICAS.flatMap((count): Figure[] => [
      {
        name: `CPU of ${label(count)}`,
        unit: "ms a task",
        measure: async () => (await at(count))[load].deputeMs,
      },
      {
        name: `CPU of Postgres, ${label(count)}`,
        unit: "ms a task",
        measure: async () => (await at(count))[load].postgresMs,
      },
      { name: `tasks, ${label(count)}`, unit: "a second", measure: async () => (await at(count))[load].rate },
    ]),
    {
      name: "CPU of 3 replicas against 1",
      unit: "%",
      ...(atMost !== undefined && { atMost }),
      measure: async () => (100 * (await at(3))[load].deputeMs) / (await at(1))[load].deputeMs,
    },
  ];
  return [
    { name: "create to complete, at an equal rate below the limit", figures: figuresOf("equal", 125) },
    {
      name: `create to complete, ${IN_FLIGHT} in flight, ${TASKS} tasks`,
      figures: figuresOf("full"),
      close: () => postgres.stop(),
    },
  ];
}

/** @param equalRate the rate of the equal load in tasks per second; without it, half of the measured rate */
async function measureAt(url: string, count: number, equalRate?: number): Promise<Measured> {
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
    const costOf = async (perSecond?: number): Promise<Cost> => {
      const before = { depute: deputeCpu(), postgres: cpuOfPostgres(dataDirectory) };
      const rate = await runner.run(TASKS, IN_FLIGHT, perSecond);
      const deputeMs = (deputeCpu() - before.depute) / TASKS;
      const postgresMs = (cpuOfPostgres(dataDirectory) - before.postgres) / TASKS;
      return { deputeMs, postgresMs, rate };
    };
    const full = await costOf();
    const equal = await costOf(equalRate ?? full.rate / 2);
    runner.close();
    return { full, equal };
  } finally {
    stage.close();
  }
}
