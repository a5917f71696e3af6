import { existsSync, mkdtempSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { startPlatform, type TestPlatform } from "../gateway/platform.ts";
import { connect, grant, holderFetch, textOf } from "./holder.ts";

/** An MCP server over stdio without an SDK. Its tool `wait` answers after the file of its argument exists. */
const SERVER = `
const { existsSync, writeFileSync } = require("node:fs");
const [word] = process.argv.slice(1);
const send = (message) => process.stdout.write(JSON.stringify({ jsonrpc: "2.0", ...message }) + "\\n");
const TOOLS = ["say", "wait"].map((name) => ({ name, inputSchema: { type: "object" } }));
require("node:readline").createInterface({ input: process.stdin }).on("line", (line) => {
  const { id, method, params } = JSON.parse(line);
  if (method === "initialize") {
    const serverInfo = { name: word, version: "1" };
    send({ id, result: { protocolVersion: params.protocolVersion, capabilities: { tools: {} }, serverInfo } });
  }
  if (method === "tools/list") send({ id, result: { tools: TOOLS } });
  if (method !== "tools/call") return;
  const answer = () => send({ id, result: { content: [{ type: "text", text: word }] } });
  if (params.name === "say") return answer();
  writeFileSync(params.arguments.file + ".begun", "");
  const timer = setInterval(() => {
    if (!existsSync(params.arguments.file)) return;
    clearInterval(timer);
    answer();
  }, 20);
});`;

const rule = { namespace: "compute", action: "execute", resource: "server" };
const saying = (word: string) => ({
  stdio: { command: process.execPath, args: ["-e", SERVER, word] },
  revision: "legacy",
  map: { tools: { say: rule, wait: rule } },
});

const folder = mkdtempSync(join(tmpdir(), "depute-mcp-reload-"));
const file = join(folder, "mcp.json");
let platform: TestPlatform;
beforeAll(async () => {
  write({ kept: saying("kept"), changed: saying("before"), removed: saying("removed") });
  platform = await startPlatform(["--mcp-config", file]);
}, 60_000);
afterAll(async () => {
  await platform.stop();
  rmSync(folder, { recursive: true });
});

/** Replaces the file in one step, as a deployment does. */
function write(upstreams: unknown): void {
  writeFileSync(`${file}.new`, JSON.stringify({ upstreams }));
  renameSync(`${file}.new`, file);
}

const urlOf = (name: string) => `${platform.url}/mcp/${name}`;
const holder = async () => holderFetch(await grant(platform, [["compute", "execute", "server"]]));
const said = async (client: Awaited<ReturnType<typeof connect>>) =>
  textOf(await client.callTool({ name: "say", arguments: {} }));
const post = (name: string) =>
  fetch(urlOf(name), { method: "POST", headers: { "content-type": "application/json" }, body: "{}" });
const statusOf = async (name: string) => (await post(name)).status;
const soon = { timeout: 10_000 };

test("a changed file applies as a whole while calls run", async () => {
  const via = await holder();
  const [kept, changed, removed] = await Promise.all(
    ["kept", "changed", "removed"].map((name) => connect(urlOf(name), "2025-11-25", via)),
  );
  if (kept === undefined || changed === undefined || removed === undefined) throw new Error("not connected");
  expect([await said(kept), await said(changed), await said(removed)]).toEqual(["kept", "before", "removed"]);
  const go = join(folder, "go");
  const running = removed.callTool({ name: "wait", arguments: { file: go } });
  await expect.poll(() => existsSync(`${go}.begun`), soon).toBe(true);

  write({ kept: saying("kept"), changed: saying("after"), added: saying("added") });
  await expect.poll(() => statusOf("removed"), soon).toBe(404);

  // The MCP sessions of an unchanged server continue. Those of changed and removed servers have ended.
  expect(await said(kept)).toBe("kept");
  for (const client of [changed, removed]) {
    await expect(client.callTool({ name: "say", arguments: {} })).rejects.toThrow();
  }
  const after = await connect(urlOf("changed"), "2025-11-25", via);
  const added = await connect(urlOf("added"), "2026-07-28", via);
  expect([await said(after), await said(added)]).toEqual(["after", "added"]);
  // A call that was running at the change gets its answer.
  writeFileSync(go, "");
  expect(textOf(await running)).toBe("removed");
  await Promise.all([kept, changed, removed, after, added].map((client) => client.close()));
});

test("the answer for an unknown server contains the addresses of the current ones", async () => {
  const answer = await post("removed");
  expect(answer.status).toBe(404);
  expect(JSON.stringify(await answer.json())).toContain("/mcp, /mcp/kept, /mcp/changed, /mcp/added");
});
