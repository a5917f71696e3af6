import { get } from "node:http";
import { connect, createServer, type Socket } from "node:net";

/** Milliseconds after which a health check counts as failed. */
const CHECK_MS = 2_000;

/** A load balancer before the gateways, at the platform's public address. */
export interface Balancer {
  close(): void;
}

/**
 * Passes each connection to the first port whose process is healthy.
 *
 * @param port the port of the public address
 * @param targets the ports of the gateways on this machine
 */
export async function startBalancer(port: number, targets: readonly number[]): Promise<Balancer> {
  const host = `localhost:${port}`;
  const open = new Set<Socket>();
  const server = createServer(async (client) => {
    open.add(client);
    client.once("close", () => open.delete(client)).on("error", () => client.destroy());
    const healthy = await firstHealthy(targets, host);
    if (healthy === undefined) return client.destroy();
    const upstream = connect(healthy, "127.0.0.1");
    upstream.on("error", () => client.destroy()).once("close", () => client.destroy());
    client.once("close", () => upstream.destroy());
    client.pipe(upstream).pipe(client);
  });
  await new Promise<void>((resolve) => server.listen(port, "localhost", resolve));
  return {
    close() {
      server.close();
      for (const client of open) client.destroy();
    },
  };
}

async function firstHealthy(targets: readonly number[], host: string): Promise<number | undefined> {
  for (const port of targets) if (await isHealthy(port, host)) return port;
  return undefined;
}

function isHealthy(port: number, host: string): Promise<boolean> {
  return new Promise((resolve) => {
    const request = get({ port, host: "127.0.0.1", path: "/health", headers: { host }, timeout: CHECK_MS });
    request.once("response", (response) => {
      response.resume();
      resolve(response.statusCode === 200);
    });
    request.once("timeout", () => request.destroy());
    request.once("error", () => resolve(false));
    request.once("close", () => resolve(false));
  });
}
