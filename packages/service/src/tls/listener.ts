import { chmodSync, rmSync } from "node:fs";
import { type AddressInfo, connect, createServer, isIP, type Server, type Socket } from "node:net";
import { createServer as createTlsServer, type TLSSocket } from "node:tls";
import type { Logger } from "../log.ts";
import { SettingsError } from "../settings.ts";
import type { Certificates } from "./certificates.ts";
import { rememberCertificate } from "./client-certificate.ts";

/**
 * The address of a listener: a host and a port, or the path of a UNIX socket. Listeners of several processes may share a
 * port; the system then spreads new connections over them (SO_REUSEPORT).
 */
export type Place =
  | { readonly host: string; readonly port: number; readonly isShared?: true }
  | { readonly path: string };

export interface ListenerOptions {
  /**
   * The certificates of the process. The listener has no TLS if this option is absent, or if it contains no certificate
   * for listeners.
   */
  readonly certificates?: Certificates;
  readonly maxConnections: number;
  /** Milliseconds in which a client must complete its handshake. */
  readonly handshakeTimeoutMs: number;
  readonly log: Logger;
  /** Called for each TCP connection, before the handshake of TLS. */
  readonly onSocket: (socket: Socket) => void;
  /** Called for each connection that can carry requests. */
  readonly onConnection: (socket: Socket) => void;
}

export interface Listener {
  /** The address on which the listener listens, e.g. `https://127.0.0.1:8080` or `unix:/run/depute/gateway.sock`. */
  readonly url: string;
  /** The port; 0 for a UNIX socket. */
  readonly port: number;
  /** Stops listening, and ends handshakes. The promise resolves when every connection has ended. */
  close(): Promise<void>;
}

/**
 * Listens with TLS if a certificate for listeners is configured, otherwise in clear text. A UNIX socket never has TLS,
 * because the permissions of its file protect it.
 *
 * @throws SettingsError for a folder of sockets that cannot be used; otherwise the errors of listen, e.g. EADDRINUSE
 */
export async function startListener(place: Place, options: ListenerOptions): Promise<Listener> {
  const isUnix = "path" in place;
  const { server, stop } = isUnix ? clearText(options) : createServerFor(options);
  server.maxConnections = options.maxConnections;
  if (isUnix) await removeStaleSocket(place.path);
  await new Promise<void>((resolve, reject) => {
    const refuse = (error: Error) => reject(isUnix ? unusableFolder(place.path, error) : error);
    server.once("error", refuse);
    server.listen(isUnix ? { path: place.path } : tcpPlace(place), () => {
      server.off("error", refuse);
      resolve();
    });
  });
  server.on("error", (error) => options.log.error({ err: error }, "the listening socket failed"));
  if (isUnix) chmodSync(place.path, 0o660);
  const port = isUnix ? 0 : (server.address() as AddressInfo).port;
  const scheme = options.certificates?.listener === undefined ? "http" : "https";
  return {
    url: isUnix ? `unix:${place.path}` : urlOfHost(scheme, place.host, port),
    port,
    close() {
      stop();
      return new Promise((resolve) => server.close(() => resolve()));
    },
  };
}

function unusableFolder(path: string, cause: NodeJS.ErrnoException): SettingsError {
  return new SettingsError(
    `cannot listen on ${path} (${cause.code}); name an existing folder that this user may write with --socket-dir or DEPUTE_SOCKET_DIR`,
    { cause },
  );
}

function tcpPlace({ host, port, isShared }: Exclude<Place, { path: string }>) {
  return { host, port, ...(isShared === true && { reusePort: true }) };
}

/** Returns the URL of a host and a port. An IPv6 address is put in brackets. */
export function urlOfHost(scheme: "http" | "https", host: string, port: number): string {
  return `${scheme}://${isIP(host) === 6 ? `[${host}]` : host}:${port}`;
}

interface Created {
  readonly server: Server;
  /** Ends handshakes, and unsubscribes the server from changes of the certificates. */
  readonly stop: () => void;
}

function peerOf({ remoteAddress, remotePort }: Socket): string {
  return `${remoteAddress} ${remotePort}`;
}

function clearText({ onSocket, onConnection }: ListenerOptions): Created {
  const server = createServer((socket) => {
    onSocket(socket);
    onConnection(socket);
  });
  return { server, stop: () => {} };
}

function createServerFor(options: ListenerOptions): Created {
  const { certificates, handshakeTimeoutMs, log, onSocket, onConnection } = options;
  const tls = certificates?.listener;
  if (tls === undefined) return clearText(options);
  const { secureContext, requestCert, rejectUnauthorized } = tls;
  const server = createTlsServer({
    ...secureContext,
    requestCert,
    rejectUnauthorized,
    ALPNProtocols: ["h2", "http/1.1"],
    handshakeTimeout: handshakeTimeoutMs,
  });
  // TCP sockets by the peer's address and port, because a TLSSocket has no public reference to its TCP socket.
  const handshakes = new Map<string, Socket>();
  server.on("connection", (socket: Socket) => {
    onSocket(socket);
    const peer = peerOf(socket);
    handshakes.set(peer, socket);
    socket.once("close", () => {
      if (handshakes.get(peer) === socket) handshakes.delete(peer);
    });
  });
  server.on("secureConnection", (socket: TLSSocket) => {
    handshakes.delete(peerOf(socket));
    if (requestCert) rememberCertificate(socket);
    onConnection(socket);
  });
  server.on("tlsClientError", (error) => log.debug({ err: error }, "a handshake of TLS failed"));
  const forget = certificates?.onChange((context) => server.setSecureContext(context));
  return {
    server,
    stop() {
      forget?.();
      for (const socket of handshakes.values()) socket.destroy();
    },
  };
}

/**
 * Removes the socket file of a process that has ended. If a process still listens on the socket, the file stays, and
 * listening on it fails.
 */
async function removeStaleSocket(path: string): Promise<void> {
  const error = await new Promise<NodeJS.ErrnoException | undefined>((resolve) => {
    const socket = connect({ path }, () => resolve(undefined));
    socket.once("error", resolve);
    socket.once("connect", () => socket.destroy());
  });
  if (error?.code === "ECONNREFUSED") rmSync(path);
}
