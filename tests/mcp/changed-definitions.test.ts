import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Client } from "@modelcontextprotocol/client";
import { createMcpHandler, Server } from "@modelcontextprotocol/server";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { changingServer } from "./changing.ts";
import { connect, type Grant, grant, holderFetch, type Revision, refusal, textOf } from "./holder.ts";
import { type McpPlatform, startPlatform } from "./platform.ts";
import { connectProxy } from "./proxy-process.ts";

const folder = mkdtempSync(join(tmpdir(), "depute-changing-"));
const PROGRAM = new URL("changing-server.ts", import.meta.url).pathname;
const RULE = { namespace: "data", action: "query", resource: "reports" };
const map = {
  tools: { report: RULE },
  methods: { "prompts/get": RULE, "completion/complete": RULE },
};

/** Servers built with the published SDKs. Only those named `-announces` announce changes. */
const SERVERS = ["legacy", "modern", "http", "legacy-announces", "modern-announces"] as const;
type Name = (typeof SERVERS)[number];
const fileOf = (name: string) => join(folder, `${name}.changed`);
const change = (name: string) => writeFileSync(fileOf(name), "");

/**
 * Configures how the proxy reaches a server. Each transport of the proxy has its own servers, so that changes do not
 * affect the other transports.
 */
function upstreamOf(name: Name, front: string) {
  if (name === "http") return { http: { url: `${overHttp}/${front}-${name}` }, map };
  const [era = "", ...announces] = name.split("-");
  const args = [PROGRAM, era, fileOf(`${front}-${name}`), ...announces];
  return { stdio: { command: process.execPath, args }, map, revision: era };
}

let overHttp = "";
const handlers = new Map<string, ReturnType<typeof createMcpHandler>>();
const http = createServer(async (request, response) => {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  const name = (request.url ?? "").slice(1);
  const makeServer = () => changingServer(Server, () => handlersChanged.has(name), true).server;
  const handler = handlers.get(name) ?? createMcpHandler(makeServer);
  handlers.set(name, handler);
  const headers = new Headers(
    Object.entries(request.headers).map(([key, value]) => [key, String(value)] as [string, string]),
  );
  const method = request.method ?? "GET";
  const body = chunks.length === 0 ? null : Buffer.concat(chunks);
  const answer = await handler.fetch(
    new Request(`http://${request.headers.host}/`, { method, headers, body }),
  );
  response.writeHead(answer.status, Object.fromEntries(answer.headers));
  for await (const chunk of answer.body ?? []) response.write(chunk);
  response.end();
});
const handlersChanged = new Set<string>();

let platform: McpPlatform;
beforeAll(async () => {
  await new Promise<void>((resolve) => http.listen(0, "127.0.0.1", resolve));
  overHttp = `http://127.0.0.1:${(http.address() as AddressInfo).port}`;
  const fronts = ["2026-07-28", "2025-11-25", "unlisted", "notice"];
  platform = await startPlatform(
    Object.fromEntries(
      fronts.flatMap((front) => SERVERS.map((name) => [`s${front}-${name}`, upstreamOf(name, front)])),
    ),
  );
}, 60_000);
afterAll(async () => {
  await platform.stop();
  http.closeAllConnections();
  http.close();
  rmSync(folder, { recursive: true, force: true });
});

const reading = () => grant(platform, [["data", "query", "reports"]]);
const changeAt = (front: string, name: Name) => {
  handlersChanged.add(`${front}-${name}`);
  change(`${front}-${name}`);
};

/** The proxy's transports, each reached with the official client. */
const FRONTS: Record<string, (holder: Grant, name: Name) => Promise<Client>> = {
  "2026-07-28": (holder, name) =>
    connect(platform.mcp(`s2026-07-28-${name}`), "2026-07-28", holderFetch(holder)),
  "2025-11-25": (holder, name) =>
    connect(platform.mcp(`s2025-11-25-${name}`), "2025-11-25", holderFetch(holder)),
  stdio: async (holder, name) => {
    const { client, connected } = await connectProxy(
      { platform, folder },
      { upstream: upstreamOf(name, "stdio"), holder },
    );
    await connected();
    return client;
  },
};

const CHANGED = {
  code: -32001,
  data: {
    type: "capability_not_granted",
    detail: expect.stringContaining("has changed since the caller listed it"),
  },
};
const completion = {
  ref: { type: "ref/prompt" as const, name: "brief" },
  argument: { name: "of", value: "" },
};

describe.each(Object.entries(FRONTS))("over %s", (front, connected) => {
  test.each(SERVERS)(
    "a definition that %s changes after the list is unusable until the next list",
    async (name) => {
      const client = await connected(await reading(), name);
      const report = () => client.callTool({ name: "report", arguments: { path: "/a" } });
      await client.listTools();
      await client.listPrompts();
      expect(textOf(await report())).toBe("ran: Reads a report.");
      expect(JSON.stringify(await client.getPrompt({ name: "brief" }))).toContain("Asks for a summary.");

      changeAt(front, name);
      expect(await refusal(report())).toMatchObject(CHANGED);
      expect(await refusal(client.getPrompt({ name: "brief" }))).toMatchObject(CHANGED);
      expect(await refusal(client.complete(completion))).toMatchObject(CHANGED);

      await client.listTools(undefined, { cacheMode: "refresh" });
      expect(textOf(await report())).toBe("ran: Sends a report to somebody.");
      expect(await refusal(client.getPrompt({ name: "brief" }))).toMatchObject(CHANGED);
      await client.listPrompts(undefined, { cacheMode: "refresh" });
      expect(JSON.stringify(await client.getPrompt({ name: "brief" }))).toContain("every password");
      expect((await client.complete(completion)).completion.values).toEqual(["Asks for every password."]);
      await client.close();
    },
    30_000,
  );
});

test.each<Name>(["legacy", "modern", "http"])(
  "a caller that lists nothing uses the current definition of %s until it changes",
  async (name) => {
    const client = await connect(
      platform.mcp(`sunlisted-${name}`),
      "2026-07-28",
      holderFetch(await reading()),
    );
    const report = () => client.callTool({ name: "report", arguments: { path: "/a" } });
    expect(textOf(await report())).toBe("ran: Reads a report.");
    changeAt("unlisted", name);
    expect(await refusal(report())).toMatchObject({
      code: -32001,
      data: { detail: expect.stringContaining("has changed, and the caller has not listed the new one") },
    });
    await client.listTools();
    expect(textOf(await report())).toBe("ran: Sends a report to somebody.");
    await client.close();
  },
  30_000,
);

describe.each<Revision>(["2026-07-28", "2025-11-25"])("a client of %s", (revision) => {
  test.each<Name>(["legacy-announces", "modern-announces"])(
    "is notified of a change that %s announces",
    async (name) => {
      const heardMessages: string[] = [];
      let hear = () => {};
      const changeTold = new Promise<void>((resolve) => {
        hear = resolve;
      });
      const onChanged = (error: Error | null) => {
        heardMessages.push(String(error));
        hear();
      };
      const client = await connect(platform.mcp(`snotice-${name}`), revision, holderFetch(await reading()), {
        listChanged: { tools: { autoRefresh: false, onChanged } },
      });
      await client.listTools();
      changeAt("notice", name);
      await changeTold;
      expect(heardMessages[0]).toBe("null");
      await client.close();
      rmSync(fileOf(`notice-${name}`));
    },
    30_000,
  );
});
