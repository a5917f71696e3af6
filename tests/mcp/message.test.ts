import { createProof } from "@depute/dct";
import { nativeEngine as engine } from "@depute/dct/native";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { introduce, type Json } from "../gateway/platform.ts";
import { type Grant, grant } from "./holder.ts";
import { EVERYTHING, type McpPlatform, startPlatform } from "./platform.ts";

const UPSTREAM = {
  stdio: EVERYTHING,
  map: {
    tools: { echo: { namespace: "acme:tools", action: "use", resource: "https://tools.example/echo" } },
  },
};
const ECHO = { name: "echo", arguments: { message: "hello" } };

/** Posts a body as JSON. The tests send the published client's form: without `jsonrpc`, with the token as Bearer. */
const post = (
  { url }: Pick<McpPlatform, "url">,
  path: string,
  body: unknown,
  headers: Record<string, string> = {},
) =>
  fetch(`${url}${path}`, {
    method: "POST",
    headers: { "content-type": "application/json", ...headers },
    body: JSON.stringify(body),
  });
const answerOf = async (answer: Promise<Response>): Promise<Json> => (await answer).json();

describe("the address of the published DelegateOS client", () => {
  let platform: McpPlatform;
  let holder: Grant;
  beforeAll(async () => {
    platform = await startPlatform({ tools: UPSTREAM }, ["--holder-proof", "optional"]);
    holder = await grant(platform, [["acme:tools", "use", "https://tools.example/**"]]);
  });
  afterAll(() => platform.stop());

  test("lists and calls the tools that the token grants, with the token as Bearer", async () => {
    const bearer = { authorization: `Bearer ${holder.token}` };
    const listed = await answerOf(
      post(platform, "/mcp/message", { id: 1, method: "tools/list", params: {} }, bearer),
    );
    expect(listed).toMatchObject({ id: 1, result: { tools: [{ name: "echo" }] } });
    const called = await answerOf(
      post(platform, "/mcp/message", { id: "two", method: "tools/call", params: ECHO }, bearer),
    );
    expect(called).toMatchObject({ id: "two", result: { content: [{ type: "text", text: "Echo: hello" }] } });
  });

  test.each(["/mcp/message", "/mcp/message/tools"])(
    "accepts the token as dct at %s as well",
    async (path) => {
      const list = { id: 1, method: "tools/list", params: {}, dct: holder.token };
      expect(await answerOf(post(platform, path, list))).toMatchObject({
        result: { tools: [{ name: "echo" }] },
      });
    },
  );

  test("denies other tools with the text's message", async () => {
    const other = await grant(platform, [["acme:tools", "use", "https://tools.example.evil.org/**"]]);
    const call = { id: 1, method: "tools/call", params: ECHO };
    const headers = { authorization: `Bearer ${other.token}` };
    expect(await answerOf(post(platform, "/mcp/message", call, headers))).toMatchObject({
      id: 1,
      error: { code: -32001, message: "DCT verification failed", data: { type: "capability_not_granted" } },
    });
    expect(await answerOf(post(platform, "/mcp/message", call))).toMatchObject({ error: { code: -32001 } });
  });

  test.each<[string, unknown, Record<string, string>]>([
    ["a value that is not an object", [1], {}],
    ["no id", { method: "tools/list", params: {} }, {}],
    ["no method", { id: 1, params: {} }, {}],
    ["malformed parameters", { id: 1, method: "tools/list", params: 7 }, {}],
    ["an unknown member", { id: 1, method: "tools/list", dtc: "x" }, {}],
    ["two tokens", { id: 1, method: "tools/list", dct: "AAAA" }, { authorization: "Bearer BBBB" }],
  ])("refuses %s", async (_, body, headers) => {
    const answer = await answerOf(post(platform, "/mcp/message", body, headers));
    expect(answer.error.code).toBe(-32600);
  });

  test("lists the servers in the refusal of another server's name", async () => {
    const list = { id: 1, method: "tools/list", params: {} };
    const { error } = await answerOf(post(platform, "/mcp/message/files", list));
    expect(error).toMatchObject({
      code: -32053,
      data: { detail: expect.stringContaining("/mcp/message/tools") },
    });
  });

  test.each(["/mcp/nothing", "/mcp/tools/more", "/mcp/stream"])("%s is a JSON-RPC error", async (path) => {
    for (const method of ["POST", "GET", "DELETE"]) {
      const answer = await fetch(`${platform.url}${path}`, {
        method,
        headers: { "content-type": "application/json" },
        ...(method === "POST" && { body: JSON.stringify({ jsonrpc: "2.0", id: 1, method: "ping" }) }),
      });
      expect(answer.status).toBe(404);
      expect(await answer.json()).toMatchObject({
        ...{ jsonrpc: "2.0", id: null },
        error: { code: -32053, data: { detail: expect.stringContaining("/mcp/tools") } },
      });
    }
  });
});

test("a proof beside the token is required if holders must prove possession", async () => {
  const platform = await startPlatform({ tools: UPSTREAM, more: UPSTREAM });
  try {
    await introduce(platform, "anybody");
    const holder = await grant(platform, [["acme:tools", "use", "https://tools.example/**"]]);
    const path = "/mcp/message/tools";
    const authorization = `Bearer ${holder.token}`;
    const call = { id: 1, method: "tools/call", params: ECHO };
    expect(await answerOf(post(platform, path, call, { authorization }))).toMatchObject({
      error: { code: -32001, data: { type: "proof_required" } },
    });
    const dpop = createProof(engine, holder.keypair, {
      ...{ htm: "POST", htu: `${platform.url}${path}` },
      ...{ token: holder.token, arguments: ECHO.arguments },
    });
    expect(await answerOf(post(platform, path, call, { authorization, dpop }))).toMatchObject({
      result: { content: [{ text: "Echo: hello" }] },
    });
    // A platform with several servers refuses a request that names none.
    expect(await answerOf(post(platform, "/mcp/message", call, { authorization }))).toMatchObject({
      error: { code: -32053 },
    });
  } finally {
    await platform.stop();
  }
});
