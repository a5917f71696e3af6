import { execFileSync, spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { introduce } from "../../gateway/platform.ts";
import { holderRelay } from "../conformance/holder-relay.ts";
import { grant } from "../holder.ts";
import { EVERYTHING, type McpPlatform, startPlatform } from "../platform.ts";
import { MAIN } from "../proxy-process.ts";
import {
  type Call,
  type ForeignClient,
  inspector,
  python,
  sdk1,
  sdk2,
  type Target,
  toolsByConfig,
} from "./foreign.ts";

const INSPECTOR = "@modelcontextprotocol/inspector@2.12.0";
const PYTHON_SDK = "mcp==2.3.0";
const INSTALL_MS = 300_000;
const TEST_MS = 120_000;

const hasPython = spawnSync("python3", ["-c", "import sys, venv, ensurepip"]).status === 0;
if (!hasPython) {
  if (process.env.CI === "true") throw new Error("python3 with venv is needed: MCP has a client in Python");
  // biome-ignore lint/suspicious/noConsole: a skipped test has to be seen by the person who runs it
  console.warn("*** SKIPPED: python3 has no venv, so that the official Python client of MCP is not run ***");
}

const folder = mkdtempSync(join(tmpdir(), "depute-mcp-clients-"));
const interpreter = join(folder, "python/bin/python");
const REFUSED = /DCT verification failed|the tool does not exist/;
const CLIENTS: [name: string, observe: ForeignClient, refused: RegExp][] = [
  ["the TypeScript SDK 1.x", sdk1, REFUSED],
  ["the TypeScript SDK 2.x, as an earlier client", sdk2("legacy"), REFUSED],
  ["the TypeScript SDK 2.x", sdk2("auto"), REFUSED],
  // The Inspector itself looks for the tool in the server's list, and does not send the call.
  ["the Inspector's command line", inspector(folder), /tool_not_found/],
];
if (hasPython) {
  CLIENTS.push(
    ["the Python SDK, as an earlier client", python(interpreter, "legacy"), REFUSED],
    ["the Python SDK", python(interpreter, "auto"), REFUSED],
  );
}

let platform: McpPlatform;
let relay: Awaited<ReturnType<typeof holderRelay>>;
let targets: Readonly<Record<string, { target: Target; call: Call; tools: readonly string[]; text: string }>>;

beforeAll(async () => {
  writeFileSync(join(folder, "package.json"), JSON.stringify({ private: true }));
  execFileSync(
    "npm",
    ["install", "--prefer-offline", "--no-audit", "--no-fund", "--ignore-scripts", INSPECTOR],
    {
      cwd: folder,
      stdio: "pipe",
    },
  );
  if (hasPython) {
    execFileSync("python3", ["-m", "venv", join(folder, "python")]);
    const install = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", PYTHON_SDK];
    execFileSync(interpreter, install, { stdio: "pipe" });
  }
  platform = await startPlatform({
    everything: { stdio: EVERYTHING, maps: ["everything"], revision: "legacy" },
  });
  const holder = await grant(platform, [["compute", "execute", "everything/echo"]]);
  relay = await holderRelay(platform.mcp("everything"), holder);
  const at = (name: string) => join(folder, name);
  writeFileSync(
    at("mcp.json"),
    JSON.stringify({ upstreams: { everything: { maps: ["everything"], revision: "legacy" } } }),
  );
  writeFileSync(at("token"), holder.token);
  writeFileSync(at("key"), Buffer.from(holder.keypair.privateKey).toString("base64url"), { mode: 0o600 });
  const proxy = [MAIN, "mcp-proxy", "--config", at("mcp.json"), "--platform", platform.url];
  const credentials = ["--token-file", at("token"), "--key-file", at("key")];
  const proven = [...proxy, ...credentials];
  const echo = {
    call: { tool: "echo", arguments: { message: "hello" } },
    tools: ["echo"],
    text: "Echo: hello",
  };
  await introduce(platform, "worker", [["summarize"]]);
  const relayed = (...words: string[]) => [MAIN, "mcp", ...words, "--server", platform.url];
  const discover = {
    call: { tool: "discover", arguments: { query: "summarize" } },
    tools: expect.arrayContaining(["cancel", "delegate", "discover", "verify", "watch"]),
    text: expect.stringContaining("does summarize"),
  };
  targets = {
    "a proxied server over HTTP": { target: { url: relay.url }, ...echo },
    "a proxied server over stdio": {
      target: {
        command: process.execPath,
        args: [...proven, "--", EVERYTHING.command, ...EVERYTHING.args],
      },
      ...echo,
    },
    "a proxied server of the platform over stdio": {
      target: { command: process.execPath, args: [...relayed("everything"), ...credentials] },
      ...echo,
    },
    "Depute itself over HTTP": { target: { url: `${platform.url}/mcp` }, ...discover },
    "Depute itself over stdio": { target: { command: process.execPath, args: relayed() }, ...discover },
  };
}, INSTALL_MS);
afterAll(async () => {
  relay.stop();
  await platform.stop();
  rmSync(folder, { recursive: true });
}, 60_000);

describe.each([
  "a proxied server over HTTP",
  "a proxied server over stdio",
  "a proxied server of the platform over stdio",
  "Depute itself over HTTP",
  "Depute itself over stdio",
])("%s", (server) => {
  test.each(CLIENTS)(
    "lists the granted tools to %s, answers its call, and refuses an unknown tool",
    async (_, observe, refused) => {
      const { target, call, tools, text } = targets[server] ?? expect.unreachable(server);
      expect(await observe(target, call)).toEqual({
        tools,
        text,
        refused: expect.stringMatching(refused),
      });
    },
    TEST_MS,
  );
});

test("the configuration file of a host contains Depute, and a proxied server", async () => {
  const proxied = targets["a proxied server over stdio"]?.target;
  const file = join(folder, "host.json");
  const depute = { type: "http", url: `${platform.url}/mcp` };
  writeFileSync(file, JSON.stringify({ mcpServers: { depute, everything: proxied } }));
  expect(await toolsByConfig(folder, file, "depute")).toContain("delegate");
  expect(await toolsByConfig(folder, file, "everything")).toEqual(["echo"]);
}, 60_000);
