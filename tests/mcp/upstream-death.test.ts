import { createClient } from "@connectrpc/connect";
import { SpendService } from "@depute/contracts/depute/tokens/v1/spend_service_pb";
import { afterAll, beforeAll, expect, test } from "vitest";
import { connect, grant, holderFetch, refusal, textOf } from "./holder.ts";
import { type McpPlatform, startPlatform } from "./platform.ts";

/** An MCP server without an SDK that speaks JSON lines over stdio. The tool's name selects its behaviour. */
const SERVER = `
const send = (message) => process.stdout.write(JSON.stringify({ jsonrpc: "2.0", ...message }) + "\\n");
const TOOLS = ["die", "wait", "garble", "answer"].map((name) => ({ name, inputSchema: { type: "object" } }));
require("node:readline").createInterface({ input: process.stdin }).on("line", (line) => {
  const { id, method, params } = JSON.parse(line);
  if (method === "initialize") {
    const serverInfo = { name: "odd", version: "1" };
    send({ id, result: { protocolVersion: params.protocolVersion, capabilities: { tools: {} }, serverInfo } });
  }
  if (method === "server/discover") process.exit(1);
  if (method === "tools/list") send({ id, result: { tools: TOOLS } });
  if (method !== "tools/call") return;
  if (params.name === "die") process.exit(1);
  if (params.name === "garble") send({ id, result: { content: 7 } });
  if (params.name === "answer") send({ id, result: { content: [{ type: "text", text: "there" }] } });
});`;

const rule = { namespace: "compute", action: "execute", resource: "odd", cost: 100 };
const upstream = {
  stdio: { command: process.execPath, args: ["-e", SERVER] },
  map: { tools: { die: rule, wait: rule, garble: rule, answer: rule } },
  revision: "legacy",
  timeoutMs: 500,
};
let platform: McpPlatform;
beforeAll(async () => {
  const nowhere = { ...upstream, stdio: { command: "/nowhere/at/all" } };
  const { revision, ...unknown } = upstream;
  platform = await startPlatform({ odd: upstream, crashing: upstream, nowhere, unknown });
}, 60_000);
afterAll(() => platform.stop());

const spend = () => createClient(SpendService, platform.transport);
const charged = { state: "charged", reservedMicrocents: 100, chargedMicrocents: 100 };

test.each([
  ["die", { reason: "DEPENDENCY_UNAVAILABLE", budget: charged }],
  ["wait", { reason: "DEADLINE_EXCEEDED", budget: charged }],
  [
    "garble",
    { reason: "DEPENDENCY_UNAVAILABLE", detail: expect.stringMatching(/^malformed/), budget: charged },
  ],
])(
  "a server with the fault %s: its caller gets an error, the call is charged, and the next one is answered (M9)",
  async (name, data) => {
    const holder = await grant(platform, [["compute", "execute", "odd"]], 1000);
    const client = await connect(platform.mcp("odd"), "2026-07-28", holderFetch(holder));
    expect(await refusal(client.callTool({ name, arguments: {} }))).toMatchObject({ code: -32603, data });
    const token = { token: holder.token, format: "delegateos-sjt-v1" };
    const { levels } = await spend().getBudget({ token });
    expect(levels).toMatchObject([{ spentMicrocents: 100n, reservedMicrocents: 0n }]);
    expect(textOf(await client.callTool({ name: "answer", arguments: {} }))).toBe("there");
    await client.close();
  },
);

test("a server that ends at the question for its revisions is restarted as a legacy one", async () => {
  const holder = await grant(platform, [["compute", "execute", "odd"]], 1000);
  const client = await connect(platform.mcp("unknown"), "2026-07-28", holderFetch(holder));
  expect(textOf(await client.callTool({ name: "answer", arguments: {} }))).toBe("there");
  await client.close();
});

test("a server that cannot be started costs no budget", async () => {
  const holder = await grant(platform, [["compute", "execute", "odd"]], 1000);
  const answer = await holderFetch(holder)(platform.mcp("nowhere"), {
    method: "POST",
    headers: { "content-type": "application/json", accept: "application/json, text/event-stream" },
    body: JSON.stringify({
      jsonrpc: "2.0",
      id: 1,
      method: "tools/call",
      params: { name: "answer", arguments: {} },
    }),
  });
  expect(await answer.json()).toMatchObject({
    error: { code: -32603, data: { reason: "DEPENDENCY_UNAVAILABLE" } },
  });
  const { remainingMicrocents } = await spend().getBudget({
    token: { token: holder.token, format: "delegateos-sjt-v1" },
  });
  expect(remainingMicrocents).toBe(1000n);
});

test("a server that crashes again is restarted later, and health shows it", async () => {
  const holder = await grant(platform, [["compute", "execute", "odd"]], 1000);
  const client = await connect(platform.mcp("crashing"), "2026-07-28", holderFetch(holder));
  const call = (name: string) => client.callTool({ name, arguments: {} });
  const health = async () => {
    const answer = await fetch(`${platform.url}/readyz`);
    const { parts } = (await answer.json()) as { parts: Record<string, string> };
    return [answer.status, parts["mcp/crashing"]];
  };
  const failures = async () => {
    const text = await (await fetch(`${platform.url}/metrics`)).text();
    return /depute_mcp_server_failures_total\{server="crashing"\} (\d+)/.exec(text)?.[1];
  };
  expect(await health()).toEqual([200, "SERVING"]);
  await refusal(call("die"));
  expect(textOf(await call("answer"))).toBe("there");
  await refusal(call("die"));

  // The call during the wait before a restart reaches no server.
  expect(await refusal(call("answer"))).toMatchObject({
    code: -32603,
    data: {
      reason: "DEPENDENCY_UNAVAILABLE",
      detail: expect.stringMatching(/failed 2 times in a row; it can start again in \d+ ms: try again then/),
    },
  });
  expect([await health(), await failures()]).toEqual([[200, "NOT_SERVING"], "2"]);
  await expect.poll(() => call("answer").then(textOf, () => ""), { timeout: 10_000 }).toBe("there");
  expect(await health()).toEqual([200, "SERVING"]);
  await client.close();
});
