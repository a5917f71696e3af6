import { spawn } from "node:child_process";
import { once } from "node:events";
import { openSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { freePorts } from "depute/ports";

const MAIN = fileURLToPath(new URL("../../../cli/src/main.ts", import.meta.url));

interface ProcessState {
  readonly name: string;
  readonly pid: number | null;
  readonly restarts: number;
}

/** The content of `cluster.json`. */
export interface ClusterState {
  readonly services: readonly (ProcessState & { readonly service: string; readonly url: string })[];
  readonly backends: readonly ProcessState[];
}

/** A cluster of the command `depute cluster`. */
export interface RunningCluster {
  /** The address that all gateways share. */
  readonly url: string;
  readonly stateFile: string;
  state(): ClusterState;
  /** Sends a signal to a process. @returns its process id @throws Error if the process does not run */
  signal(name: string, signal: NodeJS.Signals): number;
  /** Sends a signal to a process and to those that it started. */
  signalGroup(name: string, signal: NodeJS.Signals): void;
  /** Restarts one process after the other. Resolves when each has restarted. */
  restartInTurn(): Promise<void>;
  stop(): Promise<void>;
}

export interface RunningClusterOptions {
  readonly replicas: number;
  readonly folder: string;
  readonly env: Readonly<Record<string, string>>;
}

/** Starts a cluster at free ports. Its log is the file `cluster.log` of the folder. */
export async function startCluster({
  replicas,
  folder,
  env,
}: RunningClusterOptions): Promise<RunningCluster> {
  const ports = await portsApart(5);
  const names = ["GATEWAY", "REGISTRY", "TASKS", "TOKENS", "VERIFIER"];
  const settings = Object.fromEntries(names.map((name, i) => [`DEPUTE_${name}_PORT`, `${ports[i]}`]));
  const dataDir = join(folder, "data");
  const log = openSync(join(folder, "cluster.log"), "a");
  const child = spawn(process.execPath, [MAIN, "cluster", "--replicas", `${replicas}`], {
    env: { ...process.env, DEPUTE_LOG_LEVEL: "warn", ...settings, ...env, DEPUTE_DATA_DIR: dataDir },
    stdio: ["ignore", "pipe", log],
  });
  const isUp = (async () => {
    for await (const line of createInterface({ input: child.stdout as NodeJS.ReadableStream }))
      if (line.includes("Ctrl-C drains")) return true;
    return false;
  })();
  if (!(await isUp))
    throw new Error(`the cluster did not start: ${readFileSync(join(folder, "cluster.log"))}`);
  child.stdout?.resume();
  const stateFile = join(dataDir, "cluster.json");
  const state = () => JSON.parse(readFileSync(stateFile, "utf8")) as ClusterState;
  const pidOf = (name: string): number => {
    const { services, backends } = state();
    const pid = [...services, ...backends].find((each) => each.name === name)?.pid;
    if (typeof pid !== "number") throw new Error(`${name} does not run`);
    return pid;
  };
  return {
    url: `http://127.0.0.1:${ports[0]}`,
    stateFile,
    state,
    signal(name, signal) {
      const pid = pidOf(name);
      process.kill(pid, signal);
      return pid;
    },
    signalGroup: (name, signal) => void process.kill(-pidOf(name), signal),
    async restartInTurn() {
      const before = new Map(state().services.map(({ name, restarts }) => [name, restarts]));
      child.kill("SIGHUP");
      for (;;) {
        const { services } = state();
        if (services.every(({ name, restarts, pid }) => pid !== null && restarts > (before.get(name) ?? 0)))
          return;
        await new Promise((resolve) => setTimeout(resolve, 200));
      }
    },
    async stop() {
      if (child.exitCode !== null || child.signalCode !== null) return;
      child.kill("SIGTERM");
      await once(child, "exit");
    },
  };
}

/**
 * Returns ports with the last digits 0, 1, 2, and so on. A service's replicas use the ports 10, 20, … above one of
 * them, so the ports of two services never meet.
 */
export async function portsApart(count: number): Promise<number[]> {
  const ports: number[] = [];
  for (let last = 0; last < count; last++) {
    const [port = 0] = await freePorts(1);
    ports.push(port - (port % 10) + last);
  }
  return ports;
}
