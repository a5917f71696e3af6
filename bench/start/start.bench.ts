import type { Benchmarks, Figure } from "../bench.ts";
import { measureStart, type Program, type StartCost } from "./processes.ts";
import { baselineTree, builtMain, installSeconds, type Tree } from "./trees.ts";

/** Number of measured starts; the least is reported, since other load only adds to it. */
const ROUNDS = 3;
const GOALS = { cpu: 0.5, idleMb: 220, clusterMb: 110, install: 2 / 3 };

let baseline: Tree | undefined;
const before = (): Program => {
  baseline ??= baselineTree();
  return { main: "cli/src/main.ts", folder: baseline.folder };
};
const source = (): Program => ({ main: "cli/src/main.ts", folder: process.cwd() });
let built: Program | undefined;
const shipped = (): Program => {
  built ??= { main: builtMain(), folder: process.cwd() };
  return built;
};

/** Returns the least processor time of several starts, in seconds. One start before them fills the compile cache. */
async function warmCpu(program: Program): Promise<number> {
  const seconds: number[] = [];
  for (let round = 0; round <= ROUNDS; round++) {
    const { cpuSeconds } = await measureStart(program, "start", { withMemory: false });
    if (round > 0) seconds.push(cpuSeconds);
  }
  return Math.min(...seconds);
}

const memory = (program: Program, command: "start" | "cluster"): Promise<StartCost> =>
  measureStart(program, command, { withMemory: true });

const remembered = new Map<string, number>();
/** Returns a figure in seconds. `share` compares the measured values of such figures by their names. */
function seconds(name: string, measure: () => number | Promise<number>): Figure {
  return {
    name,
    unit: "s",
    measure: async () => {
      const value = await measure();
      remembered.set(name, value);
      return value;
    },
  };
}
const share = (name: string, of: string, to: string, atMost: number): Figure => ({
  name,
  unit: "",
  atMost,
  measure: () => (remembered.get(of) ?? Number.NaN) / (remembered.get(to) ?? Number.NaN),
});

const benchmarks: Benchmarks = () => [
  {
    name: "processor time from start to ready",
    figures: [
      seconds("before, from source", () => warmCpu(before())),
      seconds("now, from source", () => warmCpu(source())),
      seconds("now, built", () => warmCpu(shipped())),
      share("from source, of before", "now, from source", "before, from source", GOALS.cpu),
      share("built, of before", "now, built", "before, from source", GOALS.cpu),
    ],
  },
  {
    name: "idle memory of one process",
    figures: [
      {
        name: "before, from source",
        unit: "MB",
        measure: async () => (await memory(before(), "start")).idleMb[0] ?? Number.NaN,
      },
      {
        name: "now, from source",
        unit: "MB",
        measure: async () => (await memory(source(), "start")).idleMb[0] ?? Number.NaN,
      },
      {
        name: "now, built",
        unit: "MB",
        atMost: GOALS.idleMb,
        measure: async () => (await memory(shipped(), "start")).idleMb[0] ?? Number.NaN,
      },
    ],
  },
  {
    name: "idle memory of the largest process of a cluster",
    figures: [
      {
        name: "before, from source",
        unit: "MB",
        measure: async () => Math.max(...(await memory(before(), "cluster")).idleMb),
      },
      {
        name: "now, from source",
        unit: "MB",
        measure: async () => Math.max(...(await memory(source(), "cluster")).idleMb),
      },
      {
        name: "now, built",
        unit: "MB",
        atMost: GOALS.clusterMb,
        measure: async () => Math.max(...(await memory(shipped(), "cluster")).idleMb),
      },
    ],
  },
  {
    name: "processor time of npm ci",
    figures: [
      seconds("npm ci before", () => installSeconds("before")),
      seconds("npm ci now", () => installSeconds("now")),
      share("now, of before", "npm ci now", "npm ci before", GOALS.install),
    ],
    close: async () => baseline?.remove(),
  },
];

export default benchmarks;
