import { once } from "node:events";
import { createServer } from "node:net";
import { envName, flagName, SettingsError } from "@depute/service";

/**
 * Returns free ports below the system's range of ephemeral ports. The system assigns these ports to no other process,
 * so they normally stay free until this process uses them.
 */
export async function freePorts(count: number): Promise<number[]> {
  const free = new Set<number>();
  while (free.size < count) {
    const port = 10_000 + Math.floor(Math.random() * 20_000);
    if (await isFree(port)) free.add(port);
  }
  return [...free];
}

/**
 * Checks that an address is free. Call this function before you start processes, because a failure would require that
 * you stop them again.
 *
 * @param port the port to check; 0 means any free port, and needs no check
 * @param setting the name of the port's setting, for the error
 * @throws SettingsError if the process cannot listen on the address
 */
export async function requireFree(host: string, port: number, setting: string): Promise<void> {
  const code = port === 0 ? undefined : await fault(host, port);
  if (code === undefined) return;
  const problem = code === "EADDRINUSE" ? "another program listens there" : code;
  throw new SettingsError(
    `cannot listen on ${host}:${port} (${problem}); choose another port with ${flagName(setting)} or ${envName(setting)}`,
  );
}

async function isFree(port: number): Promise<boolean> {
  return (await fault("127.0.0.1", port)) === undefined;
}

/** Returns the system's error code if the process cannot listen on an address; undefined if it can. */
async function fault(host: string, port: number): Promise<string | undefined> {
  const server = createServer();
  const listening = once(server, "listening").then(
    () => undefined,
    ({ code, message }: NodeJS.ErrnoException) => code ?? message,
  );
  server.listen(port, host);
  const code = await listening;
  if (code === undefined) await once(server.close(), "close");
  return code;
}
