import type { IncomingMessage } from "node:http";
import { STATUS_CODES } from "node:http";
import type { Duplex } from "node:stream";
import { CHALLENGE } from "./challenge.ts";
import type { Door } from "./door.ts";
import { createRouteTable, type PathParameters } from "./http-routes.ts";
import type { Logger } from "./log.ts";

/** A path at which HTTP/1.1 connections become WebSockets (RFC 6455). */
export interface UpgradeRoute {
  /** An exact path, or a path with placeholders, as in HttpRoute. */
  readonly path: string;
  /**
   * Takes over the connection, or refuses it with `refuseUpgrade`. A route that takes over a connection must close it
   * when the process drains.
   */
  readonly upgrade: (
    request: IncomingMessage,
    socket: Duplex,
    head: Buffer,
    parameters: PathParameters,
  ) => void;
}

/** The upgrades to WebSocket on one port. This object recognizes upgrade requests and passes each to its route. */
export interface Upgrades {
  /**
   * Whether a request asks for a WebSocket at the path of an UpgradeRoute. The server answers all other requests as
   * usual.
   */
  readonly isWanted: (request: IncomingMessage) => boolean;
  readonly take: (request: IncomingMessage, socket: Duplex, head: Buffer) => void;
}

export function createUpgrades(routes: readonly UpgradeRoute[], door: Door, log: Logger): Upgrades {
  const find = createRouteTable(
    routes.map(({ path }) => ({ methods: ["GET"], path, handle: async () => {} })),
  );
  const byPath = new Map(routes.map((route) => [route.path, route]));
  const match = (request: IncomingMessage) => {
    const found = find(request.method ?? "", request.url?.split("?", 1)[0] ?? "");
    if (found === undefined || "allow" in found) return undefined;
    const route = byPath.get(found.route.path);
    return route && { route, parameters: found.parameters };
  };
  return {
    isWanted: (request) =>
      request.headers.upgrade?.toLowerCase() === "websocket" && match(request) !== undefined,
    take(request, socket, head) {
      // Node.js has removed its own listener, and an error without a listener would end the process.
      socket.on("error", (error) => log.debug({ err: error }, "an upgraded connection broke"));
      const { headers, rawHeaders } = request;
      const refusal = door({ headers, rawHeaders, httpVersion: 1 });
      if (refusal !== undefined) return refuseUpgrade(socket, refusal.status);
      const found = match(request);
      if (found === undefined) return refuseUpgrade(socket, 404);
      found.route.upgrade(request, socket, head, found.parameters);
    },
  };
}

/** Refuses a request for an upgrade with an HTTP status, and closes the connection. */
export function refuseUpgrade(socket: Duplex, status: number): void {
  const headers = { connection: "close", "content-length": "0", ...(status === 401 ? CHALLENGE : {}) };
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}`);
  socket.end(`${[`HTTP/1.1 ${status} ${STATUS_CODES[status]}`, ...lines].join("\r\n")}\r\n\r\n`);
}
