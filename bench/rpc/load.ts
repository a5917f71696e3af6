import { type ChildProcess, fork } from "node:child_process";
import { join } from "node:path";
import { h2load } from "../h2load.ts";
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
export function load(port: number, { headers, body }: Call, seconds: number): Promise<number> {
  return h2load({
    url: `http://127.0.0.1:${port}${PING_PATH}`,
    headers,
    body,
    connections: CONNECTIONS,
    inFlightOfEach: IN_FLIGHT_OF_EACH,
    seconds,
  });
}
