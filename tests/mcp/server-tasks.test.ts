import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { AuditDecision } from "@depute/contracts/depute/tokens/v1/audit_service_pb";
import { createProof } from "@depute/dct";
import { nativeEngine as engine } from "@depute/dct/native";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import type { Json } from "../gateway/platform.ts";
import { type Grant, grant, provedArguments, type Right } from "./holder.ts";
import { type McpPlatform, startPlatform } from "./platform.ts";
import { EXTENSION, modernServer, type TaskServer } from "./task-server.ts";

/**
 * This file tests tasks of an MCP server of revision 2026-07-28 behind the proxy. Client and server use no
 * SDK.
 */

const REVISION = "2026-07-28";
const rule = (resource: string, cost: Json = 0) => ({ namespace: "data", action: "query", resource, cost });
const map = {
  tools: {
    slow: { ...rule("*"), resource: { argument: "/of", form: "text", absent: "slow" } },
    ask: rule("ask"),
    plain: rule("plain"),
    rogue: rule("rogue"),
    dear: rule("dear", { most: 100, reported: "/_meta/cost" }),
  },
  passed: ["elicitation/create"],
};
const ALL: Right[] = ["slow", "ask", "plain", "rogue", "dear"].map(
  (name) => ["data", "query", name] as const,
);

let server: TaskServer;
let platform: McpPlatform;
const dataDir = mkdtempSync(join(tmpdir(), "depute-mcp-tasks-"));
const start = () =>
  startPlatform(
    {
      jobs: { http: { url: server.url }, map },
      others: { http: { url: server.url }, map },
      open: { http: { url: server.url }, map, requireToken: false },
      slowly: {
        http: { url: server.url },
        map: { ...map, tools: { slow: { ...rule("slow"), limits: { taskRequestsPerMinute: 2 } } } },
      },
      rarely: { http: { url: server.url }, map, limits: { callsPerMinute: 2 } },
    },
    [],
    { dataDir },
  );
beforeAll(async () => {
  server = await modernServer();
  platform = await start();
}, 60_000);
afterAll(async () => {
  await platform.stop();
  server.close();
  rmSync(dataDir, { recursive: true, force: true });
});

let id = 0;
const TAKING = { extensions: { [EXTENSION]: {} }, elicitation: { form: {} } };

/** Sends a request of revision 2026-07-28 with a token and its proof. */
async function send(
  holder: Grant | undefined,
  method: string,
  params: Json,
  { capabilities = TAKING, name = "jobs" }: { capabilities?: Json; name?: string } = {},
): Promise<Json> {
  const _meta = {
    "io.modelcontextprotocol/protocolVersion": REVISION,
    "io.modelcontextprotocol/clientCapabilities": capabilities,
  };
  const body = { jsonrpc: "2.0", id: ++id, method, params: { ...params, _meta } };
  const headers = new Headers({
    "content-type": "application/json",
    accept: "application/json, text/event-stream",
    "mcp-protocol-version": REVISION,
    "mcp-method": method,
    "mcp-name": params.taskId ?? params.name ?? "",
  });
  const url = platform.mcp(name);
  if (holder !== undefined) {
    const { token, keypair } = holder;
    headers.set("authorization", `DPoP ${token}`);
    const proved = provedArguments({ method, params: { ...params, _meta } });
    headers.set("dpop", createProof(engine, keypair, { htm: "POST", htu: url, token, arguments: proved }));
  }
  const answer = await fetch(url, { method: "POST", headers, body: JSON.stringify(body) });
  const text = await answer.text();
  const json = text.startsWith("{") ? text : text.match(/^data: (\{.*\})$/m)?.[1];
  return { http: answer.status, ...JSON.parse(json ?? "{}") };
}

const call = (holder: Grant, name: string, args: Json = {}, options = {}) =>
  send(holder, "tools/call", { name, arguments: args }, options);
const begin = async (holder: Grant, name = "slow", args: Json = {}): Promise<string> =>
  (await call(holder, name, args)).result.taskId;
/** Returns the server's own id of its newest task; empty if it has none. */
const lastTask = () => [...server.tasks.keys()].at(-1) ?? "";

describe("the tasks of a server of 2026-07-28", () => {
  test("are declared as a capability, and a client that declares them gets one with an id of the proxy", async () => {
    const holder = await grant(platform, ALL);
    const { result } = await send(holder, "server/discover", {});
    expect(result.capabilities.extensions).toEqual({ [EXTENSION]: {} });
    const created = (await call(holder, "slow", { of: "slow" })).result;
    expect(created).toMatchObject({
      resultType: "task",
      status: "working",
      ttlMs: 60_000,
      pollIntervalMs: 50,
    });
    expect(created.taskId).not.toContain("upstream");
    expect(JSON.stringify(created)).not.toContain(lastTask());
    const { taskId } = created;
    expect((await send(holder, "tasks/get", { taskId })).result).toMatchObject({
      resultType: "complete",
      taskId,
      status: "working",
    });
    server.finish(lastTask());
    const done = (await send(holder, "tasks/get", { taskId })).result;
    expect(done).toMatchObject({ taskId, status: "completed", result: { content: [{ type: "text" }] } });
    expect(JSON.stringify(done)).not.toContain(lastTask());
  });

  test("are not created for a client that does not declare them, which gets the result of the call", async () => {
    const holder = await grant(platform, ALL);
    const taskId = await begin(holder);
    const plain = (await call(holder, "slow", {}, { capabilities: {} })).result;
    expect(plain).toMatchObject({ resultType: "complete", content: [{ text: "at once" }] });
    for (const method of ["tasks/get", "tasks/update", "tasks/cancel"])
      expect(await send(holder, method, { taskId }, { capabilities: {} })).toMatchObject({
        http: 400,
        error: { code: -32021, data: { requiredCapabilities: { extensions: { [EXTENSION]: {} } } } },
      });
  });

  test("a task for which the client did not ask is an error of the server", async () => {
    const holder = await grant(platform, ALL);
    const { error } = await call(holder, "rogue", {}, { capabilities: {} });
    expect(error).toMatchObject({ code: -32603, data: { reason: "DEPENDENCY_UNAVAILABLE" } });
    expect(JSON.stringify(error)).not.toContain(lastTask());
  });

  test("receive the client's answer by tasks/update, and end by tasks/cancel", async () => {
    const holder = await grant(platform, ALL);
    const taskId = await begin(holder, "ask", { a: 1 });
    const asked = (await send(holder, "tasks/get", { taskId })).result;
    expect(asked.inputRequests.name.params.message).toBe("name?");
    const inputResponses = { name: { action: "accept", content: { name: "Ada" } } };
    expect((await send(holder, "tasks/update", { taskId, inputResponses })).result.resultType).toBe(
      "complete",
    );
    const done = (await send(holder, "tasks/get", { taskId })).result;
    expect(JSON.parse(done.result.content[0].text)).toEqual([{ a: 1 }, inputResponses]);
    const other = await begin(holder);
    expect((await send(holder, "tasks/cancel", { taskId: other })).result.resultType).toBe("complete");
    expect((await send(holder, "tasks/get", { taskId: other })).result.status).toBe("cancelled");
  });

  test("do not send a question that the client did not declare", async () => {
    const holder = await grant(platform, ALL);
    const taskId = await begin(holder, "ask");
    const capabilities = { extensions: { [EXTENSION]: {} } };
    expect(await send(holder, "tasks/get", { taskId }, { capabilities })).toMatchObject({
      error: { code: -32021, data: { requiredCapabilities: { elicitation: {} } } },
    });
  });

  test.each(["tasks/get", "tasks/update", "tasks/cancel"])(
    "%s: another caller, another server and a changed id find no task",
    async (method) => {
      const [owner, stranger] = [await grant(platform, ALL), await grant(platform, ALL)];
      const taskId = await begin(owner);
      const requests = server.received.length;
      const none = {
        code: -32602,
        message: "the task does not exist: check its id",
        data: { reason: "INVALID_REQUEST" },
      };
      const middle = taskId.length >> 1;
      const changed =
        taskId.slice(0, middle) + (taskId[middle] === "A" ? "B" : "A") + taskId.slice(middle + 1);
      for (const unknown of [
        changed,
        taskId.slice(0, -4),
        lastTask(),
        crypto.randomUUID(),
        "",
        "x".repeat(9000),
      ])
        expect((await send(owner, method, { taskId: unknown })).error).toEqual(none);
      expect((await send(stranger, method, { taskId })).error).toEqual(none);
      expect((await send(owner, method, { taskId }, { name: "others" })).error).toEqual(none);
      expect((await send(undefined, method, { taskId }, { name: "open" })).error).toEqual(none);
      const methods = server.received.slice(requests).map((request) => request.method);
      expect(methods.filter((each) => each.startsWith("tasks/"))).toEqual([]);
    },
  );

  test("each request on a task needs the rights of its call again", async () => {
    const owner = await grant(platform, ALL);
    const taskId = await begin(owner, "slow", { of: "slow" });
    const { keypair } = owner;
    const renewed = await grant(platform, [["data", "query", "slow"]], 1000, keypair);
    expect((await send(renewed, "tasks/get", { taskId })).result.status).toBe("working");
    const narrow = await grant(platform, [["data", "query", "plain"]], 1000, keypair);
    expect((await send(narrow, "tasks/get", { taskId })).error).toMatchObject({
      code: -32001,
      data: { type: "capability_not_granted", requested: { resource: "slow" } },
    });
    const proofOfOther = { ...renewed, keypair: (await grant(platform, ALL)).keypair };
    expect((await send(proofOfOther, "tasks/get", { taskId })).error.code).toBe(-32001);
  });

  test("a restarted gateway finds the task", async () => {
    const owner = await grant(platform, ALL);
    const taskId = await begin(owner);
    await platform.stop();
    platform = await start();
    const renewed = await grant(platform, ALL, 1000, owner.keypair);
    expect((await send(renewed, "tasks/get", { taskId })).result).toMatchObject({
      taskId,
      status: "working",
    });
  }, 60_000);

  test("the answer with a task settles the whole reservation, and later requests cost nothing", async () => {
    const holder = await grant(platform, ALL, 250);
    const taskId = await begin(holder, "dear");
    expect(taskId).toBeTypeOf("string");
    for (let i = 0; i < 3; i++)
      expect((await send(holder, "tasks/get", { taskId })).result.status).toBe("working");
    // Two tasks cost 200 of 250, so that a third call exceeds the budget.
    await begin(holder, "dear");
    await expect
      .poll(async () => (await call(holder, "dear")).error)
      .toMatchObject({ code: -32001, data: { type: "budget_exceeded" } });
  });

  test("requests on tasks count against the limits of the server and of the tool's tasks", async () => {
    const [owner, other] = [await grant(platform, ALL), await grant(platform, ALL)];
    const limited = (holder: Grant, method: string, params: Json, name: string) =>
      send(holder, method, params, { name });
    const beginAt = async (name: string, holder: Grant) =>
      (await call(holder, "slow", {}, { name })).result.taskId;
    const ofTool = await beginAt("slowly", owner);
    for (let i = 0; i < 2; i++)
      expect((await limited(owner, "tasks/get", { taskId: ofTool }, "slowly")).result.status).toBe("working");
    for (const method of ["tasks/get", "tasks/update", "tasks/cancel"])
      expect((await limited(owner, method, { taskId: ofTool }, "slowly")).error).toMatchObject({
        code: -32056,
        data: { metadata: { limit: "tool_tasks_calls_per_minute", max: "2" } },
      });
    // The calls of the tool itself have an allowance of their own, as has another caller.
    expect(await beginAt("slowly", owner)).toBeTypeOf("string");
    const others = await beginAt("slowly", other);
    expect((await limited(other, "tasks/get", { taskId: others }, "slowly")).result.status).toBe("working");
    const ofServer = await beginAt("rarely", owner);
    expect((await limited(owner, "tasks/get", { taskId: ofServer }, "rarely")).result.status).toBe("working");
    expect((await limited(owner, "tasks/get", { taskId: ofServer }, "rarely")).error).toMatchObject({
      code: -32056,
      data: { metadata: { limit: "server_calls_per_minute", max: "2" } },
    });
  });

  test("the audit log has each cancellation and denial of a request on a task; /metrics counts all requests", async () => {
    const holder = await grant(platform, ALL);
    const taskId = await begin(holder);
    for (const method of ["tasks/get", "tasks/cancel"]) await send(holder, method, { taskId });
    const narrow = await grant(platform, [["data", "query", "plain"]], 1000, holder.keypair);
    expect((await send(narrow, "tasks/get", { taskId })).error.code).toBe(-32001);
    const resource = "mcp/jobs/slow";
    await vi.waitFor(
      async () => {
        const { records } = await platform.clients.audit.listAuditRecords({
          filter: { resource },
          pageSize: 1000,
        });
        const lines = records.map(({ rpc, decision, caller }) => [rpc, decision, caller]);
        const principal = holder.keypair.principal.id;
        expect(lines.filter(([, , caller]) => caller === principal)).toEqual([
          ["tools/call", AuditDecision.ALLOWED, principal],
          ["tasks/cancel", AuditDecision.ALLOWED, principal],
        ]);
        // The narrow token is denied before its proof identifies the holder.
        expect(lines.filter(([rpc]) => rpc === "tasks/get")).toContainEqual([
          "tasks/get",
          AuditDecision.DENIED,
          "",
        ]);
      },
      { timeout: 10_000, interval: 100 },
    );
    const metrics = await (await fetch(`${platform.url}/metrics`)).text();
    for (const method of ["tasks/get", "tasks/cancel"]) {
      const labels = `server="jobs",tool="slow",method="${method}",outcome="answered"`;
      expect(metrics).toMatch(new RegExp(`depute_mcp_task_requests_total\\{${labels}\\} [1-9]`));
    }
  });

  test.each(["tasks/list", "tasks/result"])("has no %s", async (method) => {
    const holder = await grant(platform, ALL);
    expect(await send(holder, method, { taskId: "x" })).toMatchObject({ http: 404, error: { code: -32601 } });
  });
});
