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
 * - 48 tasks are always in flight. One replica then completes more tasks a second than three, because more of its calls
 *   share a commit.
 * - Tasks arrive at an equal rate: half of the rate that one replica reaches under the first load.
 *
 * Three replicas are compared with one, and with three platforms that share nothing and have a third of the load each.
 * More processes need more CPU time a task even if they share nothing. Fewer of their calls share a commit, and the
 * processes displace each other from the processor's caches.
 *
 * CPU times of the replicas and of Postgres are user and system times from /proc, so the benchmark needs Linux.
 */

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

type Costs = Readonly<Record<SetupName, Cost>>;

interface Measured {
  /** The costs with 48 tasks in flight. */
  readonly full: Costs;
  /** The costs at the equal rate, one entry a round. */
  readonly rounds: readonly Costs[];
}

export default async function benchmarks(): Promise<Benchmark[]> {
  const postgres = await postgresForTests();
  if (postgres === undefined) return [];
  let measured: Promise<Measured> | undefined;
  const measure = () => {
    measured ??= measureAll(postgres.url);
    return measured;
  };
  const median = async (of: (round: Costs) => number) => {
    const values = (await measure()).rounds.map(of).sort((a, b) => a - b);
    return values[Math.floor(values.length / 2)] ?? Number.NaN;
  };
  const full = async (of: (costs: Costs) => number) => of((await measure()).full);
  return [
    { name: "create to complete, at an equal rate below the limit", figures: figuresOf(median, 125) },
    {
      name: `create to complete, ${IN_FLIGHT} in flight, ${TASKS} tasks`,
      figures: figuresOf(full),
      close: () => postgres.stop(),
    },
  ];
}

/** @param atMost the goal of three replicas against one, in percent */
function figuresOf(read: (of: (costs: Costs) => number) => Promise<number>, atMost?: number): Figure[] {
  const against = (base: SetupName) =>
    read((costs) => (100 * costs[SHARING].deputeMs) / costs[base].deputeMs);
  const names = Object.keys(SETUPS) as SetupName[];
  return [
    ...names.flatMap((name): Figure[] => [
      { name: `CPU of ${name}`, unit: "ms a task", measure: () => read((costs) => costs[name].deputeMs) },
      {
        name: `CPU of Postgres, ${name}`,
        unit: "ms a task",
        measure: () => read((costs) => costs[name].postgresMs),
      },
      { name: `tasks, ${name}`, unit: "a second", measure: () => read((costs) => costs[name].rate) },
    ]),
    {
      name: "CPU of 3 replicas against 1",
      unit: "%",
      ...(atMost !== undefined && { atMost }),
      measure: () => against(ONE),
    },
    { name: "CPU of 3 replicas against 3 platforms", unit: "%", measure: () => against(APART) },
  ];
}

async function measureAll(url: string): Promise<Measured> {
  const setups = new Map<SetupName, Setup>();
  try {
    for (const [name, [platforms, replicas]] of Object.entries(SETUPS)) {
      const setup = await open(url, platforms, replicas);
      setups.set(name as SetupName, setup);
      await setup.runner.run(platforms * replicas * WARM_UP, IN_FLIGHT);
    }
    const costsOf = async (tasks: number, perSecond?: number): Promise<Costs> => {
      const costs: Partial<Record<SetupName, Cost>> = {};
      for (const [name, setup] of setups) costs[name] = await costOfRun(url, setup, tasks, perSecond);
      return costs as Costs;
    };
    const full = await costsOf(TASKS);
    const rounds: Costs[] = [];
    for (let round = 0; round < ROUNDS; round++)
      rounds.push(await costsOf(TASKS_A_ROUND, full[ONE].rate / 2));
    return { full, rounds };
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
