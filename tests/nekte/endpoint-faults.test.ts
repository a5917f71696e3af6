import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import type { IncomingMessage, ServerResponse } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { durationFromMs } from "@bufbuild/protobuf/wkt";
import { freePorts } from "depute/ports";
import { afterAll, afterEach, describe, expect, test } from "vitest";
import { capability, value } from "../gateway/platform.ts";
import { EndpointScene, lastOf } from "./endpoint-scene.ts";
import { serveHttp, TextAgent, type TextServer } from "./text-server.ts";

const folder = mkdtempSync(join(tmpdir(), "depute-endpoints-"));
const credentials = join(folder, "credentials.json");
const [knownPort = 0] = await freePorts(1);
writeFileSync(credentials, JSON.stringify({ [`http://127.0.0.1:${knownPort}`]: { bearer: "secret" } }));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const scene = new EndpointScene(() => ["--tasks-outbound-credentials", credentials]);
const { register, eventsOf } = scene;

const ONCE = { maxAttempts: 1 };

describe("a faulty endpoint", () => {
  let server: TextServer | undefined;
  const agent = new TextAgent();
  afterEach(async () => {
    await server?.stop();
    server = undefined;
  });

  type Answer = (request: IncomingMessage, response: ServerResponse, body: string) => boolean;
  async function at(answer: Answer, draft: object = {}) {
    server = await serveHttp(agent);
    server.intercept = answer;
    const agentId = await register(server.endpoint);
    return lastOf(await eventsOf({ agentId, description: "x", retry: ONCE, ...draft }));
  }
  const reply =
    (status: number, headers: Record<string, string>, body: string) =>
    (_: unknown, response: ServerResponse) => {
      response.writeHead(status, headers).end(body);
      return true;
    };
  const JSON_TYPE = { "content-type": "application/json" };
  const SSE_TYPE = { "content-type": "text/event-stream" };

  test.each<[string, Answer, string]>([
    ["a page", reply(200, { "content-type": "text/html" }, "<p>hello"), "ENDPOINT_MALFORMED"],
    ["malformed JSON", reply(200, JSON_TYPE, "{"), "ENDPOINT_MALFORMED"],
    ["JSON that is not an answer", reply(200, JSON_TYPE, "[]"), "ENDPOINT_MALFORMED"],
    ["an error without a code", reply(200, JSON_TYPE, '{"error":"no"}'), "ENDPOINT_MALFORMED"],
    ["an answer that is not a stream", reply(200, JSON_TYPE, '{"result":{}}'), "ENDPOINT_MALFORMED"],
    ["a refusal", reply(200, JSON_TYPE, '{"error":{"code":-32602,"message":"no"}}'), "ENDPOINT_REFUSED"],
    ["an event that is not JSON", reply(200, SSE_TYPE, "event: complete\ndata: {\n\n"), "ENDPOINT_MALFORMED"],
    ["an event of a list", reply(200, SSE_TYPE, "event: complete\ndata: []\n\n"), "ENDPOINT_MALFORMED"],
    ["a result without levels", reply(200, SSE_TYPE, "event: complete\ndata: {}\n\n"), "ENDPOINT_MALFORMED"],
    ["status 404", reply(404, JSON_TYPE, "{}"), "ENDPOINT_REFUSED"],
    ["status 401", reply(401, JSON_TYPE, "{}"), "ENDPOINT_REFUSED"],
    ["a redirect", reply(302, { location: "http://127.0.0.1:1/" }, ""), "ENDPOINT_REFUSED"],
    ["a line without an end", reply(200, SSE_TYPE, `data: ${"x".repeat(5_000_000)}`), "LIMIT_EXCEEDED"],
    [
      "a result too large for a task",
      reply(200, SSE_TYPE, `event: complete\ndata: {"out":{"full":"${"x".repeat(1_100_000)}"}}\n\n`),
      "LIMIT_EXCEEDED",
    ],
  ])("%s: the task fails, and states the cause", async (_name, answer, reason) => {
    expect(await at(answer)).toMatchObject({ case: "failed", value: { reason } });
  });

  test("a refusal without an end fails the task at once", async () => {
    const hungUp = Promise.withResolvers<void>();
    const answer: Answer = (_, response) => {
      response.once("close", () => hungUp.resolve());
      response.writeHead(403, JSON_TYPE).write("{");
      return true;
    };
    expect(await at(answer)).toMatchObject({ value: { reason: "ENDPOINT_REFUSED" } });
    await hungUp.promise;
  });

  test("an immediate answer, as NEKTE's library gives without a handler, is accepted", async () => {
    const eventKinds =
      (result: object): Answer =>
      (_, response, body) => {
        const { id, params } = JSON.parse(body);
        response.setHeader("content-type", "application/json");
        response.end(JSON.stringify({ jsonrpc: "2.0", id, result: { task_id: params.task.id, ...result } }));
        return true;
      };
    expect(
      await at(eventKinds({ status: "completed", out: { minimal: "m", full: { a: 1 } } })),
    ).toMatchObject({
      case: "completed",
      value: { output: { full: value({ a: 1 }), minimal: "m" } },
    });
    await server?.stop();
    const error = { code: "NO_MATCHING_CAPABILITY", message: "No capability matches the task" };
    expect(await at(eventKinds({ status: "failed", error }))).toMatchObject({
      case: "failed",
      value: { reason: "TASK_FAILED", message: error.message },
    });
  });

  test("an event id that cannot be stored counts as absent", async () => {
    const events = `id: ${"9".repeat(300)}\nevent: progress\ndata: {"processed":1}\n\n`;
    const end = 'id: \u00e9\nevent: complete\ndata: {"out":{"full":1}}\n\n';
    expect(await at(reply(200, SSE_TYPE, events + end))).toMatchObject({ case: "completed" });
  });

  test("an endpoint that is starting is waited for", async () => {
    let calls = 0;
    const answer: Answer = (_, response) => {
      if (++calls > 1) return false;
      response.writeHead(503).end();
      return true;
    };
    expect(await at(answer)).toMatchObject({ case: "completed" });
  });

  test("an unreachable endpoint is abandoned after a while", async () => {
    const agentId = await register("http://127.0.0.1:1/");
    const end = lastOf(await eventsOf({ agentId, description: "x", retry: ONCE }));
    expect(end).toMatchObject({ case: "failed", value: { reason: "ENDPOINT_UNREACHABLE" } });
    const grpc = await register("grpc://127.0.0.1:1");
    expect(lastOf(await eventsOf({ agentId: grpc, description: "x", retry: ONCE }))).toMatchObject({
      value: { reason: "ENDPOINT_UNREACHABLE" },
    });
  }, 30_000);

  test("an endless task is bounded by the task's time limit", async () => {
    const answer: Answer = (_, response) => {
      response.writeHead(200, SSE_TYPE);
      const more = setInterval(() => response.write(": still here\n\n"), 5);
      response.once("close", () => clearInterval(more));
      return true;
    };
    expect(await at(answer, { limits: { total: durationFromMs(400) } })).toMatchObject({
      case: "expired",
      value: { reason: "TASK_TIMEOUT" },
    });
  });

  test("an endpoint at a host outside the settings is not called", async () => {
    for (const endpoint of [
      "http://localhost:9/",
      "http://10.0.0.1/",
      "ftp://127.0.0.1/",
      "grpc://localhost:9",
    ]) {
      const agentId = await register(endpoint);
      expect(lastOf(await eventsOf({ agentId, description: "x" }))).toMatchObject({
        case: "failed",
        value: { reason: "ADDRESS_NOT_ALLOWED" },
      });
    }
  });

  test("a longer hash of the same version is used for the invocation; another version is not", async () => {
    server = await serveHttp(agent);
    const agentId = await register(server.endpoint);
    const { clients } = scene.platform;
    const capabilities = [capability("sentiment")];
    await clients.agents.publishCapabilities({ requestId: crypto.randomUUID(), agentId, capabilities });
    const { capability: known } = await clients.discovery.resolveCapability({
      capabilityId: "sentiment",
      agentId,
    });
    let theirs = `${known?.h}00112233`;
    server.intercept = (_, response, body) => {
      const { id, params } = JSON.parse(body);
      const error = { code: -32001, message: "VERSION_MISMATCH", data: { current_hash: theirs } };
      if (params.h === theirs && theirs.startsWith(known?.h ?? "none")) return false;
      response.setHeader("content-type", "application/json");
      response.end(JSON.stringify({ jsonrpc: "2.0", id, error }));
      return true;
    };
    const invoked = () => eventsOf({ agentId, capabilityId: "sentiment", input: value({}) });
    expect(lastOf(await invoked())?.case).toBe("completed");
    theirs = "0011223344556677";
    expect(lastOf(await invoked())).toMatchObject({ case: "failed", value: { reason: "VERSION_MISMATCH" } });
  });

  test("an endpoint with configured credentials receives them", async () => {
    server = await serveHttp(agent, knownPort);
    const seenIds: (string | undefined)[] = [];
    server.intercept = ({ headers }) => {
      seenIds.push(headers.authorization);
      return false;
    };
    const agentId = await register(server.endpoint);
    expect(lastOf(await eventsOf({ agentId, description: "x" }))?.case).toBe("completed");
    expect(seenIds).toEqual(["Bearer secret"]);
  });
});
