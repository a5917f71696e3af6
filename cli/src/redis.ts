import { spawnSync } from "node:child_process";
import { tmpdir } from "node:os";
import { fileURLToPath } from "node:url";
import { freePorts } from "./ports.ts";
import { type Child, startChild } from "./processes.ts";

const TIED = fileURLToPath(new URL("./tied.ts", import.meta.url));

/** Whether a redis-server can be started from the PATH. */
export function findRedis(): boolean {
  return spawnSync("redis-server", ["--version"]).status === 0;
}

/**
 * Starts a Redis without persistence, on a free loopback port. The Redis only transports wake-ups, so its loss loses no
 * data.
 */
export async function startRedis(): Promise<{ url: string; child: Child }> {
  const [port = 0] = await freePorts(1);
  const args = ["--port", `${port}`, "--bind", "127.0.0.1", "--save", "", "--appendonly", "no"];
  const child = await startChild(
    "redis",
    process.execPath,
    [TIED, "redis-server", ...args, "--dir", tmpdir(), "--loglevel", "notice"],
    process.env,
    "Ready to accept connections",
  );
  return { url: `redis://127.0.0.1:${port}`, child };
}
