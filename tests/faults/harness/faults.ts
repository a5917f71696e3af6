import { spawn } from "node:child_process";
import type { OwnPostgres } from "@depute/store/testing";
import type { RunningCluster } from "./running-cluster.ts";

/** A fault that the harness causes. `cause` also ends a fault that does not end by itself, such as a stop. */
export interface Fault {
  readonly name: string;
  cause(): Promise<void>;
}

/** Milliseconds for which a process is stopped: longer than every lease of the platform. */
const STOPPED_MS = 5_000;

const pause = (ms: number) => new Promise<void>((resolve) => void setTimeout(resolve, ms));

/** Runs one SQL statement by the program psql, and ignores its failure. */
async function psql(url: string, statement: string): Promise<void> {
  const child = spawn("psql", [url, "-qAtc", statement], { stdio: "ignore" });
  await new Promise<void>((resolve, reject) => {
    child.once("error", reject);
    child.once("exit", () => resolve());
  });
}

/**
 * Returns the faults of one round in random order: a kill of each process of a service, two stops of one, three
 * faults of Postgres, and a kill of Redis.
 */
export function faultsOf(
  cluster: RunningCluster,
  postgres: OwnPostgres,
  random: () => number,
): readonly Fault[] {
  const services = cluster.state().services.map(({ name }) => name);
  const any = () => services[Math.floor(random() * services.length)] ?? "";
  const kill = (name: string): Fault => ({
    name: `SIGKILL ${name}`,
    cause: async () => void cluster.signal(name, "SIGKILL"),
  });
  const stop = (name: string): Fault => ({
    name: `SIGSTOP ${name}`,
    async cause() {
      const pid = cluster.signal(name, "SIGSTOP");
      await pause(STOPPED_MS);
      process.kill(pid, "SIGCONT");
    },
  });
  const restart = (mode: "fast" | "immediate"): Fault => ({
    name: `Postgres restarts, ${mode}`,
    cause: () => postgres.restart(mode),
  });
  const backends: Fault = {
    name: "Postgres ends its sessions",
    cause: () =>
      psql(
        postgres.url,
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name LIKE 'depute %'",
      ),
  };
  const redis: Fault = { name: "SIGKILL redis", cause: async () => cluster.signalGroup("redis", "SIGKILL") };
  const rest = [stop(any()), restart("immediate"), backends, stop(any()), redis, restart("fast")];
  return shuffled([...services.map(kill), ...rest], random);
}

function shuffled<T>(items: readonly T[], random: () => number): T[] {
  return items
    .map((item) => ({ item, order: random() }))
    .sort((a, b) => a.order - b.order)
    .map(({ item }) => item);
}
