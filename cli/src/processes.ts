import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";

/** A process of ours. */
export interface Child {
  readonly name: string;
  readonly pid: number | undefined;
  /** True once `stop` was called. */
  readonly stopping: boolean;
  /** Resolves with the exit code or signal when the process has ended. */
  readonly exited: Promise<string>;
  /** Asks the process to end, and ends it by force after `graceMs`. */
  stop(graceMs: number): Promise<void>;
}

/**
 * Starts a process, and waits until it prints a line that contains `ready`. Its standard error goes to this process's
 * standard error. When this process ends, the IPC channel closes, so that the child notices.
 *
 * @throws Error if the process ends before it is ready
 */
export async function startChild(
  name: string,
  command: string,
  args: readonly string[],
  env: NodeJS.ProcessEnv,
  ready: string,
): Promise<Child> {
  // The child gets its own process group, so that Ctrl-C reaches only this process, which then stops its children in
  // order.
  const child = spawn(command, args, { env, stdio: ["ignore", "pipe", "inherit", "ipc"], detached: true });
  const killer = () => killGroup(child);
  process.once("exit", killer);
  let stopping = false;
  const exited = once(child, "exit").then(([code, signal]) => {
    process.off("exit", killer);
    return String(signal ?? code);
  });
  await Promise.race([printed(child, ready), exited.then((how) => Promise.reject(ended(name, how)))]);
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

/** Ends a process and all processes that it has started. */
function killGroup({ pid, exitCode, signalCode }: ChildProcess): void {
  if (pid === undefined || exitCode !== null || signalCode !== null) return;
  try {
    process.kill(-pid, "SIGKILL");
  } catch {
    // The process group no longer exists, because the process has just ended.
  }
}

function printed(child: ChildProcess, ready: string): Promise<void> {
  return new Promise((resolve) => {
    if (child.stdout === null) return;
    createInterface(child.stdout).on("line", (line) => {
      if (line.includes(ready)) resolve();
    });
  });
}

function ended(name: string, how: string): Error {
  return new Error(`${name} ended (${how}) before it was up`);
}
