import { connect as connectHttp2, type IncomingHttpHeaders } from "node:http2";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { startPlatform } from "../mcp/platform.ts";
import { introduce, type TestPlatform } from "./platform.ts";

/** An MCP server that declares changeable lists but sends no notifications. */
const SILENT = `
require("node:readline").createInterface({ input: process.stdin }).on("line", (line) => {
  const { id, method, params } = JSON.parse(line);
  if (method !== "initialize") return;
  const serverInfo = { name: "silent", version: "1" };
  const result = { protocolVersion: params.protocolVersion, capabilities: { tools: {} }, serverInfo };
  process.stdout.write(JSON.stringify({ jsonrpc: "2.0", id, result }) + "\\n");
});`;

let platform: TestPlatform;
beforeAll(async () => {
  const stdio = { command: process.execPath, args: ["-e", SILENT] };
  platform = await startPlatform({ silent: { stdio, revision: "legacy" } });
  await introduce(platform, "listener");
}, 60_000);
afterAll(() => platform.stop());

/** For each path of a silent stream, the headers of the request that opens it. */
const STREAMS: Record<string, () => Promise<Record<string, string>>> = {
  "/cap/inbox/listener": async () => ({}),
  "/mcp/silent": async () => {
    const params = {
      protocolVersion: "2025-11-25",
      capabilities: {},
      clientInfo: { name: "t", version: "1" },
    };
    const accept = { accept: "application/json, text/event-stream" };
    const opened = await platform.post(
      "/mcp/silent",
      { jsonrpc: "2.0", id: 1, method: "initialize", params },
      accept,
    );
    await opened.text();
    const session = opened.headers.get("mcp-session-id") ?? "";
    return { "mcp-session-id": session, "mcp-protocol-version": "2025-11-25" };
  },
};

/** By HTTP version: returns a response's headers when they arrive, without waiting for the body. */
const CLIENTS: Record<string, (path: string, headers: Record<string, string>) => Promise<string[]>> = {
  "HTTP/1.1": async (path, headers) => {
    const left = new AbortController();
    const answer = await fetch(platform.url + path, { headers, signal: left.signal });
    const type = answer.headers.get("content-type") ?? "";
    left.abort();
    return [String(answer.status), type];
  },
  "HTTP/2": async (path, headers) => {
    const session = connectHttp2(platform.url);
    const stream = session.request({ ":path": path, ...headers });
    stream.on("error", () => {});
    const answer = await new Promise<IncomingHttpHeaders>((resolve) => stream.once("response", resolve));
    session.destroy();
    return [String(answer[":status"]), String(answer["content-type"])];
  },
};

describe.each(Object.entries(CLIENTS))("over %s", (_, ask) => {
  test.each(Object.entries(STREAMS))(
    "the headers of %s are sent before its first event",
    async (path, prepare) => {
      const headers = { accept: "text/event-stream", ...(await prepare()) };
      expect(await ask(path, headers)).toEqual(["200", expect.stringMatching(/^text\/event-stream/)]);
    },
  );
});
