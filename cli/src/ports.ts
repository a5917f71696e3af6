import { once } from "node:events";
import { createServer } from "node:net";
import { envName, flagName, SettingsError } from "@depute/service";

/**
 * Ports that nothing listens on, below those that the system gives to whoever asks for any: nobody takes them in between.
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
 * Asks the system for an address before anything is started that would have to be undone.
 *
 * @param port 0 for any
 * @param setting the setting that names the port
 * @throws SettingsError where the address cannot be listened on
 */
export async function requireFree(host: string, port: number, setting: string): Promise<void> {
  const code = port === 0 ? undefined : await fault(host, port);
  if (code === undefined) return;
  const what = code === "EADDRINUSE" ? "another program listens there" : code;
  throw new SettingsError(
    `cannot listen on ${host}:${port} (${what}); choose another port with ${flagName(setting)} or ${envName(setting)}`,
  );
}

async function isFree(port: number): Promise<boolean> {
  return (await fault("127.0.0.1", port)) === undefined;
}

/** The system's word for why an address cannot be listened on; undefined where it can. */
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
