import { afterEach, expect, test } from "vitest";
import type { Server } from "./server.ts";
import { startEchoServer } from "./testing/echo-server.ts";

const servers: Server[] = [];
afterEach(async () => {
  await Promise.all(servers.splice(0).map((server) => server.close(0)));
});

async function start(name: string, sharedPort: number): Promise<Server> {
  const { server } = await startEchoServer({
    ...{ fast: true, maxRequestBytes: 1_000 },
    server: {
      sharedPlace: { host: "127.0.0.1", port: sharedPort, isShared: true },
      routes: [{ methods: ["GET"], path: "/name", handle: async (_, response) => void response.end(name) }],
    },
  });
  servers.push(server);
  return server;
}

async function nameAt(port: number): Promise<string> {
  const answer = await fetch(`http://127.0.0.1:${port}/name`, { headers: { connection: "close" } });
  return answer.text();
}

test("a shared port is served by the other servers when one ends", async () => {
  const [first, second] = [await start("first", 21_987), await start("second", 21_987)];
  expect([await nameAt(first.port), await nameAt(second.port)]).toEqual(["first", "second"]);
  const names = await Promise.all(Array.from({ length: 40 }, () => nameAt(21_987)));
  expect([...new Set(names)].sort()).toEqual(["first", "second"]);
  await first.close(0);
  const rest = await Promise.all(Array.from({ length: 10 }, () => nameAt(21_987)));
  expect(new Set(rest)).toEqual(new Set(["second"]));
});
