import { request } from "node:http";
import { createProof, generateKeypair } from "@depute/dct";
import { nativeEngine as engine } from "@depute/dct/native";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type McpPlatform, startPlatform } from "./platform.ts";

let platform: McpPlatform;
beforeAll(async () => {
  platform = await startPlatform({});
}, 60_000);
afterAll(() => platform.stop());

const holder = generateKeypair(engine);
const proof = (more: { htm?: string; htu?: string } = {}) =>
  createProof(engine, holder, { htm: "POST", htu: `${platform.url}/mcp`, ...more });

/** Calls a tool as an HTTP client without an SDK does. */
async function use(revision: string, headers: Record<string, string>, name = "discover", args = {}) {
  const body = JSON.stringify({
    ...{ jsonrpc: "2.0", id: 7, method: "tools/call" },
    params: { name, arguments: args, _meta: ENVELOPE[revision] },
  });
  return new Promise<{ status: number; challenge: string | undefined; body: string }>((resolve, reject) => {
    const sent = request(`${platform.url}/mcp`, {
      method: "POST",
      headers: {
        ...{ "content-type": "application/json", accept: "application/json, text/event-stream" },
        ...{ "mcp-protocol-version": revision, "mcp-method": "tools/call", "mcp-name": name },
        ...headers,
      },
    });
    sent.on("error", reject);
    sent.on("response", async (answer) => {
      const chunks: Buffer[] = [];
      for await (const chunk of answer) chunks.push(chunk as Buffer);
      const { statusCode: status = 0, headers } = answer;
      resolve({ status, challenge: headers["www-authenticate"], body: Buffer.concat(chunks).toString() });
    });
    sent.end(body);
  });
}

/** The metadata that every request needs, by revision; absent for a revision with MCP sessions. */
const ENVELOPE: Record<string, object> = {
  "2026-07-28": {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientInfo": { name: "raw", version: "1" },
    "io.modelcontextprotocol/clientCapabilities": {},
  },
};

describe.each(["2025-06-18", "2026-07-28"])("Depute's own tools, revision %s", (revision) => {
  test.each<[string, () => Record<string, string>, string]>([
    ["another method", () => ({ dpop: proof({ htm: "GET" }) }), "htm"],
    ["another address", () => ({ dpop: proof({ htu: "http://elsewhere.example/mcp" }) }), "htu"],
    ["a malformed proof", () => ({ dpop: "no.proof.at-all" }), "form"],
  ])("a proof with %s is 401 with a challenge, and names the member at fault", async (_, headers, claim) => {
    for (const [name, args] of [
      ["discover", {}],
      ["watch", { task: "x", wait_ms: 25_000 }],
    ] as const) {
      const { status, challenge, body } = await use(revision, headers(), name, args);
      expect([status, challenge]).toEqual([401, "DPoP, Bearer"]);
      expect(JSON.parse(body)).toMatchObject({
        ...{ jsonrpc: "2.0", id: 7 },
        error: { code: -32050, data: { reason: "UNAUTHENTICATED", metadata: { claim } } },
      });
    }
  });

  test("unknown credentials are 401", async () => {
    const { status, challenge } = await use(revision, { authorization: "Bearer nobody" });
    expect([status, challenge]).toEqual([401, "DPoP, Bearer"]);
  });

  test("a proof counts once", async () => {
    const dpop = proof();
    expect(await use(revision, { dpop })).toMatchObject({ status: 200, challenge: undefined });
    const again = await use(revision, { dpop });
    expect(again).toMatchObject({ status: 401, body: expect.stringContaining('"claim":"jti"') });
  });

  test("any other refusal is a result that a model can read", async () => {
    const { status, body } = await use(revision, {}, "watch", { task: "none" });
    expect([status, body]).toEqual([200, expect.stringContaining('"isError":true')]);
  });
});
