import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import type { Delegate } from "./main-job.ts";

const HERE = fileURLToPath(new URL(".", import.meta.url));
const CLI = join(HERE, "../../../cli/src/main.ts");

/** A child process of the demonstration. */
export interface Helper<T> {
  readonly about: T;
  readonly pid: number | undefined;
  stop(signal?: NodeJS.Signals): Promise<void>;
}

/** Starts the worker in a separate process. */
export function startWorkerProcess(
  url: string,
  pauseMs = 0,
  env: Record<string, string> = {},
): Promise<Helper<Delegate>> {
  return start([join(HERE, "worker.ts"), url, String(pauseMs)], env, (line) => {
    return line.startsWith("{") ? (JSON.parse(line) as Delegate) : undefined;
  });
}

/** Starts a platform by `depute start` or `depute cluster`, and reads the address from its output. */
export function startPlatformProcess(
  args: readonly string[],
  env: Record<string, string> = {},
): Promise<Helper<string>> {
  return start([CLI, ...args], env, (line) => /^Depute is up at (\S+)/.exec(line)?.[1]);
}

/** Starts one service of a platform by `depute serve`, and reads the address from its output. */
export function startServiceProcess(name: string, env: Record<string, string> = {}): Promise<Helper<string>> {
  return start([CLI, "serve", name], env, (line) => / listens on (\S+)/.exec(line)?.[1]);
}

async function start<T>(
  args: readonly string[],
  env: Record<string, string>,
  ready: (line: string) => T | undefined,
): Promise<Helper<T>> {
  const child = spawn(process.execPath, args, {
    env: { ...process.env, ...env },
    stdio: ["ignore", "pipe", "inherit"],
  });
  const kill = () => child.kill("SIGKILL");
  process.once("exit", kill);
  const about = await firstLine(child, ready);
  if (about === undefined) throw new Error(`${args.join(" ")} ended before it was ready`);
  return {
    about,
    pid: child.pid,
    async stop(signal = "SIGTERM") {
      process.off("exit", kill);
      if (child.exitCode !== null || child.signalCode !== null) return;
      child.kill(signal);
      await once(child, "exit");
    },
  };
}

async function firstLine<T>(
  child: ChildProcess,
  ready: (line: string) => T | undefined,
): Promise<T | undefined> {
  if (child.stdout === null) return undefined;
  const lines = createInterface(child.stdout);
  return new Promise((resolve) => {
    lines.on("line", (line) => {
      const about = ready(line);
      if (about !== undefined) resolve(about);
    });
    lines.on("close", () => resolve(undefined));
  });
}
