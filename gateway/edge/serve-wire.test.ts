import { once } from "node:events";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { createClient, createRouterTransport } from "@connectrpc/connect";
import { AgentService } from "@depute/contracts/depute/registry/v1/agent_service_pb";
import { ManualClock, systemTimers } from "@depute/core";
import { createLogger, DIRECT_CLIENTS } from "@depute/service";
import { afterEach, expect, test } from "vitest";
import { json, type Route, type Wire } from "./route.ts";
import { serveWire } from "./serve-wire.ts";

const SECRET = "dep_k1_0123456789abcdef0123456789abcdef";
const TOKEN = "eyJhbGciOiJFZERTQSJ9.eyJzdWIiOiJhIn0.c2lnbmF0dXJl";

/** A client of a registry that never answers. A call ends only by its timeout. */
const hanging = createClient(
  AgentService,
  createRouterTransport(({ service }) => service(AgentService, { getAgent: () => new Promise(() => {}) })),
);

let server: Server | undefined;
afterEach(() => {
  server?.closeAllConnections();
  server?.close();
  server = undefined;
});

/** Serves one route of a wire on a socket. Returns the address of the route, and the log lines. */
async function serve(route: Route) {
  const lines: Record<string, unknown>[] = [];
  const clock = new ManualClock();
  const wire: Wire = { name: "example", routes: [route], claims: [] };
  const [served] = serveWire(wire, {
    log: createLogger({
      level: "debug",
      name: "gateway",
      destination: { write: (line: string) => lines.push(JSON.parse(line)) },
    }),
    clock,
    timers: clock,
    publicUrl: "http://depute.example",
    addresses: DIRECT_CLIENTS,
    turns: { enter: () => ({ end() {} }) },
    stopping: new AbortController().signal,
    bodies: { maxBytes: 1_000, timeoutMs: 1_000, timers: systemTimers },
    loginOf: async () => "local",
    issuers: () => [],
    principalOf: ({ authorization }) => (authorization === undefined ? "local" : "agent-key"),
  });
  server = createServer((request, response) => {
    response.setHeader("depute-request-id", "call-1");
    void served?.handle(request, response, { id: "a" });
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return { lines, url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/notes/a` };
}

const note = (more: Partial<Extract<Route, { kind?: undefined }>> = {}): Route => ({
  method: "POST",
  path: "/notes/{id}",
  takes: ["application/json"],
  query: ["api_key"],
  answer: async () => json({ done: true }),
  ...more,
});

const post = (url: string, body: string, headers: Record<string, string> = {}) =>
  fetch(url, { method: "POST", body, headers: { "content-type": "application/json", ...headers } });

test("a served request has one line: wire, method, declared path, status, request id, caller", async () => {
  const { lines, url } = await serve(note());
  await post(url, "{}");
  await expect.poll(() => lines.length).toBe(1);
  expect(lines[0]).toMatchObject({
    level: "debug",
    msg: "wire",
    wire: "example",
    method: "POST",
    path: "/notes/{id}",
    status: 200,
    request_id: "call-1",
    caller: "local",
  });
});

test("a refused request has its reason at info, and a fault its cause at error", async () => {
  const refused = await serve(note());
  await post(`${refused.url}?unknown=1`, "{}");
  await expect.poll(() => refused.lines.length).toBe(1);
  expect(refused.lines[0]).toMatchObject({ level: "info", status: 400, reason: "INVALID_REQUEST" });
  server?.close();
  const faulty = await serve(note({ answer: () => Promise.reject(new Error("the disk is gone")) }));
  await post(faulty.url, "{}");
  await expect.poll(() => faulty.lines.length).toBe(1);
  expect(faulty.lines[0]).toMatchObject({ level: "error", status: 500, error: "the disk is gone" });
});

test.each([
  { outcome: "served", answer: async () => json({}) },
  { outcome: "faulty", answer: () => Promise.reject(new Error(`the peer refused Bearer ${TOKEN}`)) },
])("the log line of a $outcome request has no credential, body or query", async ({ answer }) => {
  const { lines, url } = await serve(note({ answer }));
  const headers = { authorization: `DPoP ${TOKEN}`, dpop: TOKEN, "x-api-key": SECRET, cookie: SECRET };
  await post(`${url}?api_key=${SECRET}`, JSON.stringify({ secret: SECRET }), headers);
  await expect.poll(() => lines.length).toBe(1);
  const text = JSON.stringify(lines);
  expect(text).toContain("agent-key");
  expect(text).not.toContain(SECRET);
  expect(text).not.toContain(TOKEN);
});

test.each([
  { size: 20, status: 200 },
  { size: 21, status: 413 },
])("a route with maxBodyBytes 20 answers $status to $size bytes", async ({ size, status }) => {
  const { url } = await serve(note({ maxBodyBytes: 20 }));
  const response = await post(url, JSON.stringify("x".repeat(size - 2)));
  expect(response.status).toBe(status);
});

test("a route's timeoutMs ends the call to a service that hangs", async () => {
  const { lines, url } = await serve(
    note({
      timeoutMs: 20,
      answer: async ({ call }) => {
        await hanging.getAgent({ agentId: "a" }, call.asCaller);
        return json({});
      },
    }),
  );
  const response = await post(url, "{}");
  expect(response.status).toBe(504);
  await expect.poll(() => lines.length).toBe(1);
  expect(lines[0]).toMatchObject({ level: "info", reason: "DEADLINE_EXCEEDED" });
});
