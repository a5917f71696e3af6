import { type ChildProcess, execFile, fork } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { PING_PATH } from "./contract.ts";

/** The servers that are compared; see server.ts. */
export type Kind = "grpc-js" | "adapter" | "fast";

/** A server in a process of its own. */
export interface Served {
  readonly kind: Kind;
  readonly port: number;
  /** Microseconds of CPU time that it has used, of all of its threads. */
  cpu(): Promise<number>;
  close(): void;
}

/** What a call consists of. */
export interface Call {
  readonly headers: readonly string[];
  readonly body: Uint8Array;
}

/** The young generation that servers are run with: a fifth less time in its collections, at some megabytes. */
const NODE_FLAGS = ["--max-semi-space-size=16"];

export async function serve(kind: Kind): Promise<Served> {
  const child = fork(join(import.meta.dirname, "server.ts"), [kind], { execArgv: NODE_FLAGS });
  const { port } = await told<{ port: number }>(child);
  return {
    kind,
    port,
    async cpu() {
      child.send("cpu");
      const { cpu } = await told<{ cpu: NodeJS.CpuUsage }>(child);
      return cpu.user + cpu.system;
    },
    close: () => child.disconnect(),
  };
}

function told<T>(child: ChildProcess): Promise<T> {
  return new Promise((resolve, reject) => {
    const onExit = (code: number | null) => reject(new Error(`the server ended with code ${code}`));
    child.once("exit", onExit);
    child.once("message", (message) => {
      child.off("exit", onExit);
      resolve(message as T);
    });
  });
}

const CONNECTIONS = 4;
const IN_FLIGHT_OF_EACH = 16;

/** How many calls were answered in so many seconds, with 64 always on their way. */
export async function load(port: number, call: Call, seconds: number): Promise<number> {
  const folder = mkdtempSync(join(tmpdir(), "depute-bench-"));
  try {
    const file = join(folder, "body");
    writeFileSync(file, call.body);
    const args = [
      "-D",
      String(seconds),
      "-c",
      String(CONNECTIONS),
      "-m",
      String(IN_FLIGHT_OF_EACH),
      "-d",
      file,
    ];
    for (const header of call.headers) args.push("-H", header);
    const { stdout } = await h2load([...args, `http://127.0.0.1:${port}${PING_PATH}`]);
    const [, done, succeeded] = /(\d+) done, (\d+) succeeded/.exec(stdout) ?? [];
    if (succeeded === undefined || done !== succeeded) throw new Error(`calls failed:\n${stdout}`);
    return Number(succeeded);
  } finally {
    rmSync(folder, { recursive: true });
  }
}

async function h2load(args: string[]): Promise<{ stdout: string }> {
  try {
    return await promisify(execFile)("h2load", args);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ENOENT") throw error;
    throw new Error("h2load is not on the PATH (Debian: apt-get install nghttp2-client)");
  }
}
