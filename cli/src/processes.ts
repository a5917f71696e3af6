import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";

/** A process that this process has started. */
export interface Child {
  readonly name: string;
  readonly pid: number | undefined;
  /** True after the first call of `stop`. */
  readonly stopping: boolean;
  /** Resolves with the exit code or signal when the process has ended. */
  readonly exited: Promise<string>;
  /** Asks the process to end, and kills it after `graceMs`. */
  stop(graceMs: number): Promise<void>;
}

/**
 * Functions that kill the running child processes when this process exits. One listener calls all these functions,
 * because Node warns about more than ten listeners.
 */
const killers = new Set<() => void>();
process.once("exit", () => {
  for (const kill of killers) kill();
});

/**
 * Starts a process, and waits until the process prints a line that contains `ready`. The child's standard error goes to
 * this process's standard error. When this process ends, the IPC channel closes, and so the child can notice the end.
 *
 * @throws Error if the process does not start, or ends before it is ready
 */
export async function startChild(
  name: string,
  command: string,
  args: readonly string[],
  env: NodeJS.ProcessEnv,
  ready: string,
): Promise<Child> {
  // The child gets its own process group. So Ctrl-C reaches only this process, which can then stop its children one
  // after the other.
  const child = spawn(command, args, { env, stdio: ["ignore", "pipe", "inherit", "ipc"], detached: true });
  const killer = () => killGroup(child);
  killers.add(killer);
  let stopping = false;
  const exited = once(child, "exit").then(([code, signal]) => {
    killers.delete(killer);
    // When the child was killed, the processes that it started may still run, such as the database behind `tied.ts`.
    killGroupOf(child);
    return String(signal ?? code);
  });
  const lastLines: string[] = [];
  const failed = exited.then((how) => Promise.reject(ended(name, how, lastLines)));
  await Promise.race([printed(child, ready, lastLines), failed]);
  return {
    name,
    pid: child.pid,
    get stopping() {
      return stopping;
    },
    exited,
    async stop(graceMs) {
      stopping = true;
      if (child.exitCode !== null || child.signalCode !== null) return;
      child.kill("SIGTERM");
      const timer = setTimeout(killer, graceMs);
      await exited;
      clearTimeout(timer);
    },
  };
}

/** Kills a process that still runs, and the processes that it has started. */
function killGroup(child: ChildProcess): void {
  if (child.exitCode === null && child.signalCode === null) killGroupOf(child);
}

function killGroupOf({ pid }: ChildProcess): void {
  if (pid === undefined) return;
  try {
    process.kill(-pid, "SIGKILL");
  } catch {
    // The process group does not exist, because all its processes have ended.
  }
}

/** Number of lines of the process's output that the error of a failed start contains. */
const SHOWN_LINES = 5;

function printed(child: ChildProcess, ready: string, lastLines: string[]): Promise<void> {
  return new Promise((resolve) => {
    if (child.stdout === null) return;
    createInterface(child.stdout).on("line", (line) => {
      lastLines.push(line);
      if (lastLines.length > SHOWN_LINES) lastLines.shift();
      if (line.includes(ready)) resolve();
    });
  });
}

function ended(name: string, how: string, lastLines: readonly string[]): Error {
  const output = lastLines.length === 0 ? "" : `: ${lastLines.join("\n")}`;
  return new Error(`${name} ended (${how}) before it was ready${output}`);
}
