import { spawnSync } from "node:child_process";
import { tmpdir } from "node:os";
import { fileURLToPath } from "node:url";
import { freePorts } from "./ports.ts";
import { type Child, startChild } from "./processes.ts";

const TIED = fileURLToPath(new URL("./tied.ts", import.meta.url));

/**
 * A Redis without persistence on a loopback port. It transports wake-ups and, for replicas, holds contexts without
 * `persist`. These contexts are lost when the Redis ends.
 */
export interface LocalRedis {
  readonly url: string;
  /** Starts the server, and resolves when it accepts connections. */
  start(): Promise<Child>;
}

/** Whether the PATH has a redis-server that can run. */
export function findRedis(): boolean {
  return spawnSync("redis-server", ["--version"]).status === 0;
}

/** Chooses a free loopback port for a Redis, and returns its URL and the function that starts it. */
export async function prepareLocalRedis(): Promise<LocalRedis> {
  const [port = 0] = await freePorts(1);
  const args = ["--port", `${port}`, "--bind", "127.0.0.1", "--save", "", "--appendonly", "no"];
  return {
    url: `redis://127.0.0.1:${port}`,
    start: () =>
      startChild(
        "redis",
        process.execPath,
        [TIED, "redis-server", ...args, "--dir", tmpdir(), "--loglevel", "notice"],
        process.env,
        "Ready to accept connections",
      ),
  };
}
