import { fork } from "node:child_process";
import { join } from "node:path";

/** The A2A SDK's server in a separate process. */
export interface Reference {
  /** Address of the gRPC binding, without a scheme. */
  readonly grpc: string;
  /** URL of the JSON-RPC binding. */
  readonly jsonRpc: string;
  close(): Promise<void>;
}

/** Starts the A2A SDK's server, with its store in memory. */
export function startReference(): Promise<Reference> {
  return startProcess<Omit<Reference, "close">>("reference-server.ts");
}

/** Starts a server of this folder in a separate process, which reports its addresses. */
export async function startProcess<Addresses>(
  file: string,
  ...args: readonly string[]
): Promise<Addresses & { close(): Promise<void> }> {
  const child = fork(join(import.meta.dirname, file), args);
  const addresses = await new Promise<Addresses>((resolve, reject) => {
    child.once("message", (message) => resolve(message as Addresses));
    child.once("exit", (code) => reject(new Error(`the server ended with ${code}`)));
  });
  return {
    ...addresses,
    close: () =>
      new Promise<void>((resolve) => {
        child.once("exit", () => resolve());
        child.disconnect();
      }),
  };
}
