import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Server, type Socket } from "node:net";
import { createServer as createTlsServer } from "node:tls";

/** A proxy between a test's client and a server. A test may cut the proxy's connections. */
export interface Detour {
  readonly url: string;
  /** Cuts all open connections. Returns their number. */
  cut(): number;
  close(): Promise<void>;
}

/**
 * Forwards connections from a free port to a server.
 *
 * @param tls a certificate and its key in PEM, for a detour that terminates TLS
 */
export async function detourTo(target: string, tls?: { cert: string; key: string }): Promise<Detour> {
  const { hostname, port } = new URL(target);
  const open = new Set<Socket>();
  const forward = (client: Socket) => {
    const server = connect(Number(port), hostname);
    for (const [from, to] of [
      [client, server],
      [server, client],
    ] as const) {
      open.add(from);
      from.on("error", () => to.destroy());
      from.on("close", () => {
        open.delete(from);
        to.destroy();
      });
      from.pipe(to);
    }
  };
  const detour: Server =
    tls === undefined ? createServer(forward) : createTlsServer({ ...tls, ALPNProtocols: ["h2"] }, forward);
  detour.listen(0, "127.0.0.1");
  await once(detour, "listening");
  const cut = () => {
    const sockets = [...open];
    for (const socket of sockets) socket.destroy();
    return sockets.length / 2;
  };
  return {
    url: `${tls === undefined ? "http" : "https"}://localhost:${(detour.address() as AddressInfo).port}`,
    cut,
    async close() {
      cut();
      detour.close();
      await once(detour, "close");
    },
  };
}
