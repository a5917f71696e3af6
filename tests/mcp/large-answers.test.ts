import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { createClient } from "@connectrpc/connect";
import { SpendService } from "@depute/contracts/depute/tokens/v1/spend_service_pb";
import { createMcpHandler, Server } from "@modelcontextprotocol/server";
import { afterAll, beforeAll, expect, onTestFailed, test } from "vitest";
import { connect, type Grant, grant, holderFetch, refusal, textOf } from "./holder.ts";
import { type McpPlatform, startPlatform } from "./platform.ts";

/** An MCP server without an SDK that speaks JSON lines over stdio. The tool's name selects its behaviour. */
const SERVER = `
const send = (message) => process.stdout.write(JSON.stringify(message) + "\\n");
const answer = (id, text) => send({ result: { content: [{ type: "text", text }] }, jsonrpc: "2.0", id });
const NAMES = ["large", "hold", "let-go", "stall", "answer"];
const TOOLS = NAMES.map((name) => ({ name, inputSchema: { type: "object" } }));
const held = [];
require("node:readline").createInterface({ input: process.stdin }).on("line", (line) => {
  const { id, method, params } = JSON.parse(line);
  if (method === "initialize") {
    const serverInfo = { name: "odd", version: "1" };
    send({ jsonrpc: "2.0", id, result: { protocolVersion: params.protocolVersion, capabilities: { tools: {} }, serverInfo } });
  }
  if (method === "tools/list") send({ jsonrpc: "2.0", id, result: { tools: TOOLS } });
  if (method !== "tools/call") return;
  if (params.name === "large") answer(id, "x".repeat(params.arguments.mib * 1024 * 1024));
  if (params.name === "hold") held.push(id);
  if (params.name === "let-go") for (const one of [...held.splice(0), id]) answer(one, "by " + process.pid);
  if (params.name === "answer") answer(id, "by " + process.pid);
  if (params.name === "stall") {
    const progress = { progressToken: params._meta.progressToken, progress: 1 };
    send({ jsonrpc: "2.0", method: "notifications/progress", params: progress });
    // The server stops reading until the test kills it.
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0);
  }
});`;

const handler = createMcpHandler(() => {
  const server = new Server({ name: "large", version: "1.0.0" }, { capabilities: { tools: {} } });
  const inputSchema = { type: "object" as const };
  server.setRequestHandler("tools/list", () => ({
    tools: ["large", "answer"].map((name) => ({ name, inputSchema })),
  }));
  server.setRequestHandler("tools/call", async ({ params }, { mcpReq }) => {
    // A progress message makes the proxy send the answer as an event stream.
    const token = mcpReq._meta?.progressToken;
    if (token !== undefined) {
      await mcpReq.notify({
        method: "notifications/progress",
        params: { progressToken: token, progress: 1 },
      });
    }
    const text = params.name === "large" ? "x".repeat(2 * 1024 * 1024) : "there";
    return { content: [{ type: "text", text }] };
  });
  return server;
});
const http = createServer(async (request, response) => {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  const headers = new Headers(
    Object.entries(request.headers).map(([name, value]) => [name, String(value)] as [string, string]),
  );
  const body = chunks.length === 0 ? null : Buffer.concat(chunks);
  const method = request.method ?? "GET";
  const answer = await handler.fetch(
    new Request(`http://${request.headers.host}/`, { method, headers, body }),
  );
  response.writeHead(answer.status, Object.fromEntries(answer.headers));
  for await (const chunk of answer.body ?? []) response.write(chunk);
  response.end();
});

const rule = { namespace: "compute", action: "execute", resource: "odd", cost: 100 };
const map = {
  tools: Object.fromEntries(["large", "hold", "let-go", "stall", "answer"].map((name) => [name, rule])),
};
const stdio = { command: process.execPath, args: ["-e", SERVER] };
let platform: McpPlatform;
beforeAll(async () => {
  await new Promise<void>((resolve) => http.listen(0, "127.0.0.1", resolve));
  const url = `http://127.0.0.1:${(http.address() as AddressInfo).port}/`;
  platform = await startPlatform({
    large: { stdio, map, revision: "legacy" },
    small: { stdio, map, revision: "legacy", maxAnswerBytes: 1_048_576 },
    // The test counts the reservation of each call.
    stalling: { stdio, map, revision: "legacy", definitionTtlMs: 3_600_000, callsPerReservation: 1 },
    http: { http: { url }, map, maxAnswerBytes: 1_048_576 },
  });
}, 60_000);
afterAll(async () => {
  await platform.stop();
  http.closeAllConnections();
  http.close();
});

const holder = () => grant(platform, [["compute", "execute", "odd"]], 100_000);
const clientOf = (holderGrant: Grant, name: string) =>
  connect(platform.mcp(name), "2026-07-28", holderFetch(holderGrant));
const spentBy = async ({ token }: Grant) => {
  const spend = createClient(SpendService, platform.transport);
  const { levels } = await spend.getBudget({ token: { token, format: "delegateos-sjt-v1" } });
  return levels.map(({ spentMicrocents, reservedMicrocents }) => [spentMicrocents, reservedMicrocents]);
};
const charged = { state: "charged", reservedMicrocents: 100, chargedMicrocents: 100 };

test.each([
  ["64 MiB where 10 are the limit", "large", 64, 10],
  ["2 MiB where the setting says 1", "small", 2, 1],
])(
  "an answer of %s is charged to its caller, and other callers continue with the same server",
  async (_, name, mib, mebibytes) => {
    const [greedy, patient] = [await holder(), await holder()];
    const [one, other] = [await clientOf(greedy, name), await clientOf(patient, name)];
    const before = textOf(await other.callTool({ name: "answer", arguments: {} }));
    const inFlight = Array.from({ length: 5 }, () => other.callTool({ name: "hold", arguments: {} }));
    expect(await refusal(one.callTool({ name: "large", arguments: { mib } }))).toMatchObject({
      code: -32603,
      data: {
        reason: "LIMIT_EXCEEDED",
        detail: expect.stringContaining("bytes"),
        metadata: { limit: "upstream_message_bytes", max: String(mebibytes * 1_048_576) },
        budget: charged,
      },
    });
    const last = await one.callTool({ name: "let-go", arguments: {} });
    expect([...(await Promise.all(inFlight)), last].map(textOf)).toEqual(Array(6).fill(before));
    await expect.poll(() => spentBy(greedy), { timeout: 5_000 }).toEqual([[200n, 0n]]);
    await expect.poll(() => spentBy(patient), { timeout: 5_000 }).toEqual([[600n, 0n]]);
    await Promise.all([one.close(), other.close()]);
  },
  60_000,
);

test("when a server ends, unsent calls are released, and sent calls are charged", async () => {
  const held = await holder();
  const client = await clientOf(held, "stalling");
  const [, serverPid] =
    /^by (\d+)$/.exec(textOf(await client.callTool({ name: "answer", arguments: {} }))) ?? [];
  const kill = () => {
    process.kill(Number(serverPid), "SIGKILL");
  };
  onTestFailed(kill);
  const stalling = Promise.withResolvers<unknown>();
  const stall = { name: "stall", arguments: {} };
  const stalled = refusal(client.callTool(stall, { onprogress: stalling.resolve }));
  // Calls that are sent together may arrive in any order.
  await stalling.promise;
  // Larger than the pipe's buffer, so the write blocks while the server does not read.
  const text = "x".repeat(300_000);
  const waiting = Array.from({ length: 8 }, () =>
    refusal(client.callTool({ name: "answer", arguments: { text } })),
  );
  // Each call reserves its cost immediately before it is sent to the server.
  await expect.poll(() => spentBy(held)).toEqual([[100n, 900n]]);
  kill();
  expect((await stalled).data).toMatchObject({ reason: "DEPENDENCY_UNAVAILABLE", budget: charged });
  const states = (await Promise.all(waiting)).map(({ data }) => data.budget.state);
  expect(new Set(states)).toEqual(new Set(["charged", "released"]));
  const paid = 2 + states.filter((state) => state === "charged").length;
  expect(await spentBy(held)).toEqual([[BigInt(paid * 100), 0n]]);
  expect(textOf(await client.callTool({ name: "answer", arguments: {} }))).toMatch(/^by /);
  await client.close();
}, 60_000);

test.each([
  ["as JSON", {}],
  ["as an event", { onprogress: () => {} }],
])(
  "an answer over HTTP that is too large, %s, is charged to its caller alone",
  async (_, options) => {
    const held = await holder();
    const client = await clientOf(held, "http");
    const [large, other] = await Promise.all([
      refusal(client.callTool({ name: "large", arguments: {} }, options)),
      client.callTool({ name: "answer", arguments: {} }),
    ]);
    expect(large).toMatchObject({ code: -32603, data: { reason: "LIMIT_EXCEEDED", budget: charged } });
    expect(textOf(other)).toBe("there");
    await client.close();
  },
  30_000,
);
