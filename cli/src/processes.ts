import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";

/** A process of ours. */
export interface Child {
  readonly name: string;
  readonly pid: number | undefined;
  /** True once `stop` was called. */
  readonly stopping: boolean;
  /** Resolves when it has ended, with its exit code or signal. */
  readonly exited: Promise<string>;
  /** Asks it to end, and ends it after `graceMs`. */
  stop(graceMs: number): Promise<void>;
}

/**
 * Starts a process, and waits until it prints a line that holds `ready`. What it logs to standard error goes on to ours. By
 * the channel that it has it notices when we are gone.
 *
 * @throws Error when it ends before
 */
export async function startChild(
  name: string,
  command: string,
  args: readonly string[],
  env: NodeJS.ProcessEnv,
  ready: string,
): Promise<Child> {
  // A process group of its own: a Ctrl-C reaches only the parent, which stops the others in order.
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

/** Ends a process with all that it has started. */
function killGroup({ pid, exitCode, signalCode }: ChildProcess): void {
  if (pid === undefined || exitCode !== null || signalCode !== null) return;
  try {
    process.kill(-pid, "SIGKILL");
  } catch {
    // It has just ended.
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
