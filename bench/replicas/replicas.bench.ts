import { postgresForTests } from "@depute/store/testing";
import type { Replica } from "../../tests/replicas/replica.ts";
import { Stage } from "../../tests/tasks/stage.ts";
import { amount, turns } from "../amount.ts";
import type { Benchmark, Figure } from "../bench.ts";
import { cpuOf, cpuOfPostgres, dataDirectoryOf } from "./cpu.ts";
import { replicaRunner } from "./runner.ts";

/**
 * Measures the CPU time of tasks from creation to completion at several replicas of the tasks service on one Postgres,
 * over 24 agents, each with a worker's stream at each replica. The clients call by gRPC. Two loads are measured:
 *
 * - 48 tasks in flight. Fewer replicas complete more tasks a second, and more calls share a commit.
 * - An equal rate, half of what one replica reaches. Here three replicas are also compared with three platforms that
 *   share nothing, each with a third of the load. More processes need more CPU time a task even if they share nothing,
 *   because fewer calls share a commit and the processes displace each other from the processor's caches.
 *
 * CPU times of the replicas and of Postgres are user and system times from /proc, so the benchmark needs Linux.
 */

const REPLICAS = [1, 3];
const IN_FLIGHT = 48;
const AGENTS = 24;
/** Number of warm-up tasks of each replica, so that each has compiled its code. */
const WARM_UP = Number(process.env.DEPUTE_BENCH_WARM_UP ?? amount(8_000));
const TASKS = Number(process.env.DEPUTE_BENCH_TASKS ?? amount(4_000, 100));
/** At the equal rate, the setups take turns. */
const ROUNDS = turns(3);
const TASKS_A_ROUND = amount(1_600, 100);

const ONE = "1 replica";
const SHARING = "3 replicas";
const APART = "3 platforms of one replica";
const SETUPS = { [ONE]: [1, 1], [SHARING]: [1, 3], [APART]: [3, 1] } as const;
type SetupName = keyof typeof SETUPS;

interface Cost {
  /** CPU time of all replicas of the tasks service, and of Postgres, in milliseconds a task. */
  readonly deputeMs: number;
  readonly postgresMs: number;
  /** Tasks per second. */
  readonly rate: number;
}

export default async function benchmarks(): Promise<Benchmark[]> {
  const postgres = await postgresForTests();
  if (postgres === undefined) return [];
  const { url } = postgres;
  return [
    { name: "create to complete, at an equal rate below the limit", figures: equalFigures(url) },
    {
      name: `create to complete, ${IN_FLIGHT} in flight, ${TASKS} tasks`,
      figures: fullFigures(url),
      close: () => postgres.stop(),
    },
  ];
}

function fullFigures(url: string): Figure[] {
  const measured = new Map<number, Promise<Cost>>();
  const at = (count: number) => {
    const cost = measured.get(count) ?? costAtLimit(url, count);
    measured.set(count, cost);
    return cost;
  };
  const label = (count: number) => (count === 1 ? "1 replica" : `${count} replicas`);
  return [
    ...REPLICAS.flatMap((count) => costFigures(label(count), () => at(count))),
    {
      name: "CPU of 3 replicas against 1",
      unit: "%",
      measure: async () => (100 * (await at(3)).deputeMs) / (await at(1)).deputeMs,
    },
  ];
}

function equalFigures(url: string): Figure[] {
  let rounds: Promise<readonly Record<SetupName, Cost>[]> | undefined;
  const median = async (of: (round: Record<SetupName, Cost>) => number) => {
    rounds ??= equalRounds(url);
    const values = (await rounds).map(of).sort((a, b) => a - b);
    return values[Math.floor(values.length / 2)] ?? Number.NaN;
  };
  const costOf = async (name: SetupName): Promise<Cost> => ({
    deputeMs: await median((round) => round[name].deputeMs),
    postgresMs: await median((round) => round[name].postgresMs),
    rate: await median((round) => round[name].rate),
  });
  const against = (base: SetupName) =>
    median((round) => (100 * round[SHARING].deputeMs) / round[base].deputeMs);
  return [
    ...[ONE, SHARING, APART].flatMap((name) => costFigures(name, () => costOf(name as SetupName))),
    { name: "CPU of 3 replicas against 1", unit: "%", atMost: 125, measure: () => against(ONE) },
    { name: "CPU of 3 replicas against 3 platforms", unit: "%", measure: () => against(APART) },
  ];
}

function costFigures(label: string, cost: () => Promise<Cost>): Figure[] {
  return [
    { name: `CPU of ${label}`, unit: "ms a task", measure: async () => (await cost()).deputeMs },
    { name: `CPU of Postgres, ${label}`, unit: "ms a task", measure: async () => (await cost()).postgresMs },
    { name: `tasks, ${label}`, unit: "a second", measure: async () => (await cost()).rate },
  ];
}

async function costAtLimit(url: string, count: number): Promise<Cost> {
  const setup = await open(url, 1, count);
  try {
    await setup.runner.run(count * WARM_UP, IN_FLIGHT);
    return await costOfRun(url, setup, TASKS);
  } finally {
    setup.close();
  }
}

async function equalRounds(url: string): Promise<Record<SetupName, Cost>[]> {
  const setups = new Map<SetupName, Setup>();
  try {
    for (const [name, [platforms, replicas]] of Object.entries(SETUPS)) {
      const setup = await open(url, platforms, replicas);
      setups.set(name as SetupName, setup);
      await setup.runner.run((platforms * replicas * WARM_UP) / 2, IN_FLIGHT);
    }
    const { rate: limit } = await costOfRun(url, setups.get(ONE) as Setup, TASKS_A_ROUND);
    const rounds: Record<SetupName, Cost>[] = [];
    for (let round = 0; round < ROUNDS; round++) {
      const costs: Partial<Record<SetupName, Cost>> = {};
      for (const [name, setup] of setups) costs[name] = await costOfRun(url, setup, TASKS_A_ROUND, limit / 2);
      rounds.push(costs as Record<SetupName, Cost>);
    }
    return rounds;
  } finally {
    for (const setup of setups.values()) setup.close();
  }
}

interface Setup {
  readonly replicas: readonly Replica[];
  readonly runner: ReturnType<typeof replicaRunner>;
  close(): void;
}

/** Opens platforms with some replicas of the tasks service each. The agents of all platforms have the same names. */
async function open(url: string, platforms: number, replicasEach: number): Promise<Setup> {
  const stages: Stage[] = [];
  let agentIds: string[] = [];
  for (let platform = 0; platform < platforms; platform++) {
    const stage = await Stage.open(url, replicasEach);
    stages.push(stage);
    agentIds = [];
    for (let n = 0; n < AGENTS; n++) agentIds.push(await stage.agent());
  }
  const replicas = stages.flatMap((stage) => stage.replicas);
  const runner = replicaRunner(
    replicas.map((replica) => replica.url.replace("http://", "")),
    agentIds,
  );
  const close = () => {
    runner.close();
    for (const stage of stages) stage.close();
  };
  return { replicas, runner, close };
}

/** @param perSecond the rate of the tasks; without it, 48 tasks are in flight */
async function costOfRun(
  url: string,
  { replicas, runner }: Setup,
  tasks: number,
  perSecond?: number,
): Promise<Cost> {
  const dataDirectory = await dataDirectoryOf(url);
  const deputeCpu = () => replicas.reduce((sum, { process: { pid } }) => sum + cpuOf(pid), 0);
  const before = { depute: deputeCpu(), postgres: cpuOfPostgres(dataDirectory) };
  const rate = await runner.run(tasks, IN_FLIGHT, perSecond);
  const deputeMs = (deputeCpu() - before.depute) / tasks;
  const postgresMs = (cpuOfPostgres(dataDirectory) - before.postgres) / tasks;
  return { deputeMs, postgresMs, rate };
}
