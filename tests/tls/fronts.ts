import { connect, createServer, type Server, type Socket } from "node:net";
import { createSecureContext, createServer as createTlsServer, TLSSocket } from "node:tls";
import type { Identity } from "@depute/service/development-certificates";

/** A TLS server in front of a server without TLS. */
export interface Front {
  readonly port: number;
  /** Number of connections that completed a handshake. */
  readonly accepted: () => number;
  stop(): Promise<void>;
}

/** Request code of a Postgres client that asks for TLS. (PostgreSQL protocol 3.0, SSLRequest) */
const SSL_REQUEST = 80877103;

/**
 * Starts a TLS server in front of a port of this machine. TLS begins with the first byte, as for `rediss:`
 * addresses.
 */
export function tlsFront(identity: Identity, port: number): Promise<Front> {
  let accepted = 0;
  const server = createTlsServer({ cert: identity.certificate, key: identity.key }, (socket) => {
    accepted++;
    join(socket, connect(port, "127.0.0.1"));
  });
  return listen(server, () => accepted);
}

/**
 * Starts a TLS server for Postgres in front of a UNIX socket. A Postgres client first asks for TLS in clear
 * text.
 */
export function postgresFront(identity: Identity, path: string): Promise<Front> {
  let accepted = 0;
  const secureContext = createSecureContext({ cert: identity.certificate, key: identity.key });
  const server = createServer((socket) => {
    socket.on("error", () => socket.destroy());
    socket.once("data", (request) => {
      if (request.length !== 8 || request.readUInt32BE(4) !== SSL_REQUEST) return socket.destroy();
      socket.write("S");
      const secure = new TLSSocket(socket, { isServer: true, secureContext });
      secure.once("secure", () => {
        accepted++;
        join(secure, connect({ path }));
      });
    });
  });
  return listen(server, () => accepted);
}

function join(client: Socket, server: Socket): void {
  client.on("error", () => server.destroy());
  server.on("error", () => client.destroy());
  client.pipe(server).pipe(client);
}

async function listen(server: Server, accepted: () => number): Promise<Front> {
  const sockets = new Set<Socket>();
  server.on("connection", (socket: Socket) => {
    sockets.add(socket);
    socket.once("close", () => sockets.delete(socket));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("the front has no port");
  return {
    port: address.port,
    accepted,
    stop: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        for (const socket of sockets) socket.destroy();
      }),
  };
}
