import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { introduce, type Json } from "../gateway/platform.ts";
import { earlierSdk } from "./earlier-sdk.ts";
import { grant } from "./holder.ts";
import { filesystem, type McpPlatform, makeFiles, startPlatform } from "./platform.ts";
import { MAIN } from "./proxy-process.ts";

/** This file tests the hosts' configuration files of docs/mcp-proxy.md. The host is the official TypeScript SDK 1.x. */

const PAGE = new URL("../../docs/mcp-proxy.md", import.meta.url);
const CONFIGURATIONS = [
  ...readFileSync(PAGE, "utf8").matchAll(/^```json\n(\{\n {2}"mcpServers"[\s\S]*?)^```/gm),
].map(([, text = ""]) => text);

const files = makeFiles();
const folder = mkdtempSync(join(tmpdir(), "depute-mcp-host-"));
let platform: McpPlatform;
beforeAll(async () => {
  const server = { maps: ["filesystem"], revision: "legacy" };
  platform = await startPlatform({ files: { ...server, stdio: filesystem(files.root) } });
  await introduce(platform, "worker", [["summarize"]]);
  const { token, keypair } = await grant(platform, [["docs", "read", join(files.root, "docs/**")]]);
  writeFileSync(join(folder, "mcp.json"), JSON.stringify({ upstreams: { files: server } }));
  writeFileSync(join(folder, "token"), token);
  const key = Buffer.from(keypair.privateKey).toString("base64url");
  writeFileSync(join(folder, "key"), key, { mode: 0o600 });
}, 60_000);
afterAll(async () => {
  await platform.stop();
  files.remove();
  rmSync(folder, { recursive: true });
}, 60_000);

/** Returns a configuration of the page with this test's addresses, paths and programs. */
function onThisMachine(text: string): Json {
  const { command, args } = filesystem(files.root);
  const config = JSON.parse(text.replaceAll("http://127.0.0.1:8080", platform.url));
  const places: Record<string, readonly string[]> = {
    "/etc/depute/mcp.json": [join(folder, "mcp.json"), "--platform", platform.url],
    "/run/depute/token": [join(folder, "token")],
    "/run/depute/key": [join(folder, "key")],
    "mcp-server-filesystem": [command, ...args.slice(0, -1)],
    "/srv/project": args.slice(-1),
  };
  for (const server of Object.values<Json>(config.mcpServers)) {
    if (server.command !== "depute") continue;
    server.command = process.execPath;
    server.args = [MAIN, ...server.args.flatMap((arg: string) => places[arg] ?? [arg])];
  }
  return config.mcpServers;
}

/** Connects to a server of a configuration as a host does. */
async function connect({ url, command, args }: Json): Promise<Json> {
  const [{ Client }, { StreamableHTTPClientTransport }, { StdioClientTransport }] = await Promise.all(
    ["index", "streamableHttp", "stdio"].map((path) => earlierSdk(`client/${path}`)),
  );
  const client = new Client({ name: "host", version: "1.0.0" });
  const env = { ...process.env, DEPUTE_CONFIG: join(folder, "config.json") };
  await client.connect(
    url === undefined
      ? new StdioClientTransport({ command, args, env, stderr: "ignore" })
      : new StreamableHTTPClientTransport(new URL(url)),
  );
  return client;
}

test("the page has a configuration for each kind of host", () => {
  expect(CONFIGURATIONS).toHaveLength(2);
});

describe.each(CONFIGURATIONS.map((text, i) => [i + 1, text] as const))(
  "configuration %i of the page",
  (_, text) => {
    test("reaches Depute itself", async () => {
      const client = await connect(onThisMachine(text).depute);
      const { structuredContent } = await client.callTool({ name: "discover", arguments: {} });
      expect(structuredContent.capabilities[0].agent).toBe("worker");
      await client.close();
    }, 60_000);

    test("reaches the filesystem server, within the capabilities of the token", async () => {
      const client = await connect(onThisMachine(text).files);
      const read = (path: string) =>
        client.callTool({ name: "read_text_file", arguments: { path: join(files.root, path) } });
      expect((await read("docs/plan.txt")).content[0].text).toBe("the plan");
      await expect(read("secret/key.txt")).rejects.toThrow(/DCT verification failed/);
      await client.close();
    }, 60_000);
  },
);
