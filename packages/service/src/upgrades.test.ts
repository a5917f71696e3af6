import { type IncomingMessage, request } from "node:http";
import { systemTimers } from "@depute/core";
import { afterEach, expect, test } from "vitest";
import { createLogger } from "./log.ts";
import { type Server, startServer } from "./server.ts";
import { refuseUpgrade, type UpgradeRoute } from "./upgrades.ts";

let server: Server;
afterEach(() => server.close(0));

const UPGRADE = { connection: "Upgrade", upgrade: "websocket" };

async function start(upgrades: readonly UpgradeRoute[]): Promise<void> {
  server = await startServer({
    place: { host: "127.0.0.1", port: 0 },
    rpc: () => false,
    routes: [
      {
        methods: ["GET"],
        path: "/plain",
        handle: async (_, response) => void response.end("plain"),
      },
    ],
    upgrades,
    maxConnections: 10,
    maxConcurrentStreams: 10,
    log: createLogger({ level: "silent", name: "test" }),
    timers: systemTimers,
  });
}

/** Returns the status code of the response, and the text after its head. */
function ask(path: string, headers: Record<string, string> = UPGRADE, method = "GET") {
  return new Promise<[status: number | undefined, text: string]>((resolve, reject) => {
    const clientRequest = request(`${server.url}${path}`, { headers, method });
    const read = async (response: IncomingMessage, rest: AsyncIterable<Buffer>, head?: Buffer) => {
      const parts = head === undefined ? [] : [head];
      for await (const part of rest) parts.push(part);
      resolve([response.statusCode, Buffer.concat(parts).toString()]);
    };
    clientRequest.on("response", (response) => read(response, response).catch(reject));
    clientRequest.on("upgrade", (response, socket, head) => read(response, socket, head).catch(reject));
    clientRequest.on("error", reject);
    clientRequest.end();
  });
}

test("a connection is upgraded at its address, with the parameters of the path", async () => {
  const route: UpgradeRoute = {
    path: "/live/{name}",
    upgrade(_, socket, head, { name }) {
      expect(head).toHaveLength(0);
      socket.end(
        `HTTP/1.1 101 Switching Protocols\r\nconnection: Upgrade\r\nupgrade: websocket\r\n\r\nhello ${name}`,
      );
    },
  };
  await start([route]);
  expect(await ask("/live/a%20b?x=1")).toEqual([101, "hello a b"]);
});

test("another request with an Upgrade header is answered as a request", async () => {
  await start([{ path: "/live", upgrade: (_, socket) => socket.destroy() }]);
  expect(await ask("/plain")).toEqual([200, "plain"]);
  expect(await ask("/plain", { ...UPGRADE, upgrade: "h2c" })).toEqual([200, "plain"]);
  expect((await ask("/nothing"))[0]).toBe(404);
  expect((await ask("/live", { ...UPGRADE, upgrade: "h2c" }))[0]).toBe(404);
  expect((await ask("/live", UPGRADE, "POST"))[0]).toBe(404);
});

test("a refused client gets the reason", async () => {
  await start([{ path: "/live", upgrade: (_, socket) => refuseUpgrade(socket, 403) }]);
  expect(await ask("/live")).toEqual([403, ""]);
});

test("a page of another site and a repeated credential header are refused before the handler runs", async () => {
  await start([{ path: "/live", upgrade: (_, socket) => void socket.end("HTTP/1.1 101 Taken\r\n\r\n") }]);
  expect(await ask("/live", { ...UPGRADE, origin: "https://elsewhere.example" })).toEqual([403, ""]);
  const repeated = [
    "connection",
    "Upgrade",
    "upgrade",
    "websocket",
    "host",
    "localhost",
    "dpop",
    "a",
    "dpop",
    "b",
  ];
  expect(await ask("/live", repeated as never)).toEqual([401, ""]);
});
