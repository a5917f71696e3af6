import { type ChildProcess, fork } from "node:child_process";

/** A process of a benchmark that answers messages. */
export interface Apart<Started> {
  /** The first message of the process. */
  readonly started: Started;
  readonly process: ChildProcess;
  /** Sends a message, and returns the answer. The next message must wait for this answer. */
  ask<Answer>(message: object): Promise<Answer>;
  /** Disconnects the process, and waits for its end. */
  stop(): Promise<void>;
}

/** Starts a file in a process of its own. The process sends a message when it is ready. */
export async function startApart<Started>(
  file: string,
  args: readonly string[] = [],
  { env = {}, flags = ["--max-semi-space-size=16"] }: { env?: NodeJS.ProcessEnv; flags?: string[] } = {},
): Promise<Apart<Started>> {
  const child = fork(file, args, { execArgv: flags, env: { ...process.env, ...env } });
  const next = <T>() =>
    new Promise<T>((resolve, reject) => {
      const onExit = (code: number | null) => reject(new Error(`${file} ended with ${code}`));
      child.once("exit", onExit);
      child.once("message", (message) => {
        child.off("exit", onExit);
        resolve(message as T);
      });
    });
  return {
    started: await next<Started>(),
    process: child,
    ask<Answer>(message: object) {
      const answer = next<Answer>();
      child.send(message);
      return answer;
    },
    async stop() {
      if (child.exitCode !== null) return;
      const ended = new Promise<void>((resolve) => child.once("exit", () => resolve()));
      if (child.connected) child.disconnect();
      await ended;
    },
  };
}
