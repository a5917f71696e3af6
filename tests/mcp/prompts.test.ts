import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Client } from "@modelcontextprotocol/client";
import { freePorts } from "depute/ports";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { connect, type Grant, grant, holderFetch, refusal, textOf } from "./holder.ts";
import { EVERYTHING, type McpPlatform, startPlatform } from "./platform.ts";
import { connectProxy } from "./proxy-process.ts";

const folder = mkdtempSync(join(tmpdir(), "depute-prompts-"));
const SAMPLING = { namespace: "llm", action: "generate", resource: "client" };
const maps = { maps: ["everything"], map: { methods: { "sampling/createMessage": SAMPLING } } };

let platform: McpPlatform;
let overHttp: { url: string; stop: () => void };
beforeAll(async () => {
  overHttp = await startEverything();
  platform = await startPlatform({
    stdio: { stdio: EVERYTHING, ...maps, revision: "legacy" },
    http: { http: { url: overHttp.url }, ...maps, revision: "legacy" },
  });
}, 60_000);
afterAll(async () => {
  await platform.stop();
  overHttp.stop();
  rmSync(folder, { recursive: true, force: true });
});

/** Starts the official server at an address of its own. */
async function startEverything() {
  const [port = 0] = await freePorts(1);
  const [script = ""] = EVERYTHING.args;
  const child = spawn(process.execPath, [script, "streamableHttp"], {
    env: { ...process.env, PORT: String(port) },
    stdio: ["ignore", "ignore", "pipe"],
  });
  for (let output = ""; !output.includes("listening on port"); ) {
    const [chunk] = (await once(child.stderr, "data")) as [Buffer];
    output += chunk.toString();
  }
  child.stderr.resume();
  return { url: `http://127.0.0.1:${port}/mcp`, stop: () => void child.kill() };
}

/** The ways to reach the official server through the proxy. Each connects the official client. */
const WAYS: Record<string, (holder: Grant) => Promise<Client>> = {
  "over HTTP, the server over stdio": (holder) =>
    connect(platform.mcp("stdio"), "2025-11-25", holderFetch(holder)),
  "over HTTP, the server over HTTP": (holder) =>
    connect(platform.mcp("http"), "2025-11-25", holderFetch(holder)),
  "over HTTP in the newest revision": (holder) =>
    connect(platform.mcp("stdio"), "2026-07-28", holderFetch(holder)),
  "over stdio, the server over stdio": async (holder) => {
    const proxied = await connectProxy({ platform, folder }, { server: EVERYTHING, upstream: maps, holder });
    await proxied.connected();
    return proxied.client;
  },
  "over stdio, the server over HTTP": async (holder) => {
    const upstream = { http: { url: overHttp.url }, ...maps };
    const made = await connectProxy({ platform, folder }, { upstream, holder });
    await made.connected();
    return made.client;
  },
};

describe.each(Object.entries(WAYS))("%s", (_, connected) => {
  const rights = [
    ["llm", "generate", "args-prompt"],
    ["llm", "generate", "completable-prompt"],
  ] as const;
  const completion = (name: string) => ({
    ref: { type: "ref/prompt" as const, name },
    argument: { name: "department", value: "S" },
  });

  test("prompts are listed, read and completed within the token's capabilities", async () => {
    const client = await connected(await grant(platform, rights));
    const { prompts } = await client.listPrompts();
    expect(prompts.map(({ name }) => name).sort()).toEqual(["args-prompt", "completable-prompt"]);
    const got = await client.getPrompt({ name: "args-prompt", arguments: { city: "Bern", state: "BE" } });
    expect(JSON.stringify(got.messages)).toContain("Bern, BE");
    const { completion: offered } = await client.complete(completion("completable-prompt"));
    expect(offered.values).toEqual(["Sales", "Support"]);

    const other = await refusal(client.getPrompt({ name: "simple-prompt" }));
    expect(other).toMatchObject({
      code: -32001,
      data: {
        type: "capability_not_granted",
        requested: { namespace: "llm", action: "generate", resource: "simple-prompt" },
      },
    });
    expect(await refusal(client.complete(completion("simple-prompt")))).toMatchObject({ code: -32001 });
    // A resource template has no prompt name, so completing it needs a capability for every resource.
    const template = { type: "ref/resource" as const, uri: "demo://resource/dynamic/text/{resourceId}" };
    const ofResource = client.complete({ ref: template, argument: { name: "resourceId", value: "1" } });
    expect(await refusal(ofResource)).toMatchObject({ data: { requested: { resource: "*" } } });
    await client.close();
  }, 30_000);

  test("without a capability no prompt is shown, read or completed", async () => {
    const client = await connected(await grant(platform, [["docs", "read", "**"]]));
    expect((await client.listPrompts()).prompts).toEqual([]);
    for (const call of [
      client.getPrompt({ name: "args-prompt", arguments: { city: "Bern" } }),
      client.complete(completion("completable-prompt")),
    ]) {
      expect(await refusal(call)).toMatchObject({ code: -32001, data: { type: "capability_not_granted" } });
    }
    await client.close();
  }, 30_000);
});

const SAMPLER = [["compute", "execute", "everything/trigger-sampling-request"]] as const;
const sample = (client: Client) =>
  client.callTool({ name: "trigger-sampling-request", arguments: { prompt: "p", maxTokens: 10 } });

test.each([
  ["passes with a token that grants it", [["llm", "generate", "client"]] as const, "a sample"],
  ["is refused without", [] as const, "DCT verification failed"],
])(
  "sampling by a server over HTTP, of a client over stdio, %s",
  async (_, more, expected) => {
    const holder = await grant(platform, [...SAMPLER, ...more]);
    const upstream = { http: { url: overHttp.url }, ...maps };
    const { client, connected } = await connectProxy({ platform, folder }, { upstream, holder });
    client.setRequestHandler("sampling/createMessage", async () => ({
      ...{ model: "test", role: "assistant" as const, content: { type: "text" as const, text: "a sample" } },
    }));
    await connected();
    const outcome = await sample(client).then(textOf, (thrown: Error) => thrown.message);
    expect(outcome).toContain(expected);
    await client.close();
  },
  30_000,
);

test("a server that many clients share cannot send legacy requests to any of them", async () => {
  const holder = await grant(platform, [...SAMPLER, ["llm", "generate", "client"]]);
  const client = await connect(platform.mcp("stdio"), "2025-11-25", holderFetch(holder), {
    capabilities: { sampling: {} },
  });
  let askedCount = 0;
  client.setRequestHandler("sampling/createMessage", async () => {
    askedCount++;
    return { model: "test", role: "assistant", content: { type: "text", text: "a sample" } };
  });
  // The proxy does not declare sampling to the server, so the server does not offer the tool that asks for a sample.
  const { tools } = await client.listTools();
  expect(tools.map(({ name }) => name)).not.toContain("trigger-sampling-request");
  expect((await refusal(sample(client))).code).toBe(-32001);
  expect(askedCount).toBe(0);
  await client.close();
}, 30_000);
