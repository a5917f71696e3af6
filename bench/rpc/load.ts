import { type ChildProcess, fork } from "node:child_process";
import { join } from "node:path";
import { assertAnswered, h2load, type Load } from "../h2load.ts";
import { PING_PATH } from "./contract.ts";

/** The servers that are compared; see server.ts. */
export type Kind = "grpc-js" | "http2" | "connect-node" | "adapter" | "fast" | "known";

/** The secret of the caller that the server `known` authenticates. */
export const SECRET = "bench-secret";

/** A server in a separate process. */
export interface Served {
  readonly kind: Kind;
  readonly port: number;
  /** Returns the CPU time of all threads of the server so far, in microseconds. */
  cpu(): Promise<number>;
  close(): void;
}

/** The parts of a request that h2load sends. */
export interface Call {
  readonly headers: readonly string[];
  readonly body: Uint8Array;
}

/**
 * A larger young generation for the garbage collector, in all servers. It reduces the time of its collections by a
 * fifth, and costs some megabytes.
 */
const NODE_FLAGS = ["--max-semi-space-size=16"];

export async function serve(kind: Kind): Promise<Served> {
  const child = fork(join(import.meta.dirname, "server.ts"), [kind], { execArgv: NODE_FLAGS });
  const { port } = await firstMessage<{ port: number }>(child);
  return {
    kind,
    port,
    async cpu() {
      child.send("cpu");
      const { cpu } = await firstMessage<{ cpu: NodeJS.CpuUsage }>(child);
      return cpu.user + cpu.system;
    },
    close: () => child.disconnect(),
  };
}

function firstMessage<T>(child: ChildProcess): Promise<T> {
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

/** Returns how many calls were answered, with 64 calls always in flight. */
export function load(port: number, call: Call, amount: Pick<Load, "seconds" | "calls">): Promise<number> {
  return h2load({
    ...requestOf(port, call),
    connections: CONNECTIONS,
    inFlightOfEach: IN_FLIGHT_OF_EACH,
    ...amount,
  });
}

/** Makes one call, and throws unless it succeeds. h2load sees no status of gRPC. */
export function assertOk(port: number, call: Call): Promise<void> {
  return assertAnswered(requestOf(port, call));
}

function requestOf(port: number, { headers, body }: Call) {
  return { url: `http://127.0.0.1:${port}${PING_PATH}`, headers, body };
}
