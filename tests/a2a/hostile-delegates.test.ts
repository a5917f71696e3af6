import { createServer, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import { startPlatform, type TestPlatform } from "../gateway/platform.ts";
import { lastOf } from "../nekte/endpoint-scene.ts";

let platform: TestPlatform;
let server: Server | undefined;
let agents = 0;

beforeAll(async () => {
  platform = await startPlatform(["--tasks-outbound-hosts", "127.0.0.1"]);
}, 60_000);
afterAll(() => platform.stop());
afterEach(async () => {
  const listening = server;
  server = undefined;
  if (listening === undefined) return;
  listening.closeAllConnections();
  await new Promise((resolve) => listening.close(resolve));
});

/** Registers an agent whose card names an address. */
async function register(url: string, protocolBinding: string): Promise<string> {
  const id = `hostile-${++agents}`;
  const a2aCard = {
    name: "hostile",
    capabilities: { streaming: true },
    supportedInterfaces: [{ url, protocolBinding, protocolVersion: "1.0" }],
  };
  await platform.clients.agents.registerAgent({ requestId: crypto.randomUUID(), agent: { id, a2aCard } });
  return id;
}

/** Delegates work to an agent that gives every request this answer. Returns the task's last event. */
async function answeredBy(binding: string, answer: (response: ServerResponse) => void) {
  const listening = createServer((_, response) => answer(response));
  server = listening;
  await new Promise<void>((resolve) => listening.listen(0, "127.0.0.1", resolve));
  const url = `http://127.0.0.1:${(listening.address() as AddressInfo).port}`;
  return endOf(await register(url, binding));
}

async function endOf(agentId: string) {
  const draft = { agentId, description: "x", retry: { maxAttempts: 1 } };
  const events = [];
  for await (const { taskEvent } of platform.clients.tasks.delegateTask({
    requestId: crypto.randomUUID(),
    draft,
  })) {
    if (taskEvent !== undefined) events.push(taskEvent);
  }
  return lastOf(events);
}

const JSON_TYPE = { "content-type": "application/json" };
const SSE_TYPE = { "content-type": "text/event-stream" };
const reply =
  (status: number, headers: Record<string, string>, body: string) => (response: ServerResponse) => {
    response.writeHead(status, headers).end(body);
  };
const stream = (...results: object[]) =>
  reply(
    200,
    SSE_TYPE,
    results.map((result) => `data: ${JSON.stringify({ jsonrpc: "2.0", id: 1, result })}\n\n`).join(""),
  );
const task = (id: string, state: string) => ({ task: { id, contextId: "c", status: { state } } });
const error = (code: number) => JSON.stringify({ jsonrpc: "2.0", id: 1, error: { code, message: "no" } });

test.each<[string, (response: ServerResponse) => void, string]>([
  ["a page", reply(200, { "content-type": "text/html" }, "<p>hello"), "ENDPOINT_MALFORMED"],
  ["no JSON", reply(200, JSON_TYPE, "{"), "ENDPOINT_MALFORMED"],
  ["a list", reply(200, JSON_TYPE, "[]"), "ENDPOINT_MALFORMED"],
  ["an error without a code", reply(200, JSON_TYPE, '{"error":"no"}'), "ENDPOINT_MALFORMED"],
  ["a result without content", stream({}), "ENDPOINT_MALFORMED"],
  [
    "a status before the task",
    stream({ statusUpdate: { taskId: "t", contextId: "c" } }),
    "ENDPOINT_MALFORMED",
  ],
  [
    "an element of another task",
    stream(task("t", "TASK_STATE_WORKING"), task("u", "TASK_STATE_COMPLETED")),
    "ENDPOINT_MALFORMED",
  ],
  ["a state of another version", stream(task("t", "TASK_STATE_DREAMING")), "ENDPOINT_MALFORMED"],
  ["invalid parameters", reply(200, JSON_TYPE, error(-32602)), "ENDPOINT_REFUSED"],
  ["another version of A2A", reply(200, JSON_TYPE, error(-32009)), "VERSION_NOT_SUPPORTED"],
  ["an error with its HTTP status", reply(400, JSON_TYPE, error(-32005)), "CONTENT_TYPE_NOT_SUPPORTED"],
  ["a missing page", reply(404, { "content-type": "text/plain" }, "?"), "ENDPOINT_REFUSED"],
  ["missing credentials", reply(401, JSON_TYPE, "{}"), "ENDPOINT_REFUSED"],
  ["a redirect", reply(302, { location: "http://127.0.0.1:1/" }, ""), "ENDPOINT_REFUSED"],
  ["a line without an end", reply(200, SSE_TYPE, `data: ${"x".repeat(5_000_000)}`), "LIMIT_EXCEEDED"],
])("JSON-RPC answered with %s fails the task with its reason", async (_, answer, reason) => {
  expect(await answeredBy("JSONRPC", answer)).toMatchObject({ case: "failed", value: { reason } });
});

const status = (code: number, reason: string) =>
  JSON.stringify({ error: { code, message: "no", details: [{ reason, domain: "a2a-protocol.org" }] } });

test.each<[string, (response: ServerResponse) => void, string]>([
  ["no JSON", reply(200, { "content-type": "application/a2a+json" }, "{"), "ENDPOINT_MALFORMED"],
  [
    "an error of A2A",
    reply(400, JSON_TYPE, status(400, "CONTENT_TYPE_NOT_SUPPORTED")),
    "CONTENT_TYPE_NOT_SUPPORTED",
  ],
  ["an error of another domain", reply(403, JSON_TYPE, status(403, "NO")), "ENDPOINT_REFUSED"],
  [
    "an error in the stream",
    reply(200, SSE_TYPE, `event: error\ndata: ${status(400, "UNSUPPORTED_OPERATION")}\n\n`),
    "UNSUPPORTED_OPERATION",
  ],
  ["a redirect", reply(307, { location: "http://127.0.0.1:1/" }, ""), "ENDPOINT_REFUSED"],
])("HTTP+JSON answered with %s fails the task with its reason", async (_, answer, reason) => {
  expect(await answeredBy("HTTP+JSON", answer)).toMatchObject({ case: "failed", value: { reason } });
});

test.each([
  ["JSONRPC", "http://192.0.2.1/"],
  ["HTTP+JSON", "https://agents.example/"],
  ["GRPC", "agents.example:443"],
])("%s at a host that the settings do not list is not called", async (binding, url) => {
  expect(await endOf(await register(url, binding))).toMatchObject({
    case: "failed",
    value: { reason: "ADDRESS_NOT_ALLOWED" },
  });
});
