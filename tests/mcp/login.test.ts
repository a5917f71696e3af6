import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import type { IncomingMessage, ServerResponse } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { startTestIssuer, type TestIssuer } from "@depute/service/testing";
import {
  Client,
  ClientCredentialsProvider,
  fromJsonSchema,
  StreamableHTTPClientTransport,
} from "@modelcontextprotocol/client";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Json } from "../gateway/platform.ts";
import { EVERYTHING, type McpPlatform, startPlatform } from "./platform.ts";

const UPSTREAM = { stdio: EVERYTHING, maps: ["everything"], requireToken: false };

let folder: string;
let issuer: TestIssuer;
let platform: McpPlatform;
/** The `resource` of each request for a token. (RFC 8707) */
const resources: (string | null)[] = [];

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "depute-login-"));
  issuer = await startTestIssuer(Date.now);
  const file = join(folder, "identities.json");
  const save = (audiences: string[]) =>
    writeFileSync(
      file,
      JSON.stringify({
        issuers: [
          {
            issuer: issuer.url,
            audiences,
            identities: [{ subject: "client:*", principal: "oauth:{subject}" }],
          },
        ],
      }),
    );
  // An access token's audience is the address of the proxied server. So the test has to know the platform's port
  // before the start.
  const port = await freePort();
  save([`http://127.0.0.1:${port}/mcp/open`, "depute"]);
  platform = await startPlatform({ open: { ...UPSTREAM, login: true }, tokens: UPSTREAM }, [
    ...["--identities-file", file, "--gateway-port", String(port)],
  ]);
  serveAuthorization();
}, 60_000);
afterAll(async () => {
  await platform.stop();
  await issuer.stop();
  rmSync(folder, { recursive: true, force: true });
});

/** Adds the endpoints of an authorization server with client credentials (RFC 6749 4.4, RFC 8414) to the issuer. */
function serveAuthorization(): void {
  issuer.answers.set("/.well-known/oauth-authorization-server", (_, response) => {
    response.setHeader("content-type", "application/json");
    response.end(
      JSON.stringify({
        issuer: issuer.url,
        authorization_endpoint: `${issuer.url}/authorize`,
        token_endpoint: `${issuer.url}/token`,
        response_types_supported: ["code"],
        grant_types_supported: ["client_credentials"],
        token_endpoint_auth_methods_supported: ["client_secret_basic"],
        code_challenge_methods_supported: ["S256"],
      }),
    );
  });
  issuer.answers.set("/token", (request, response) => void grant(request, response));
}

/** Answers a request for an access token with one whose audience is the requested resource. */
async function grant(request: IncomingMessage, response: ServerResponse): Promise<void> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  const resource = new URLSearchParams(Buffer.concat(chunks).toString()).get("resource");
  resources.push(resource);
  const token = await issuer.sign({ aud: resource ?? "none", sub: "client:robot" }, { typ: "at+jwt" });
  response.setHeader("content-type", "application/json");
  response.end(JSON.stringify({ access_token: token, token_type: "Bearer", expires_in: 300 }));
}

async function freePort(): Promise<number> {
  const other = await startTestIssuer(Date.now);
  await other.stop();
  return Number(new URL(other.url).port);
}

const INITIALIZE = {
  ...{ jsonrpc: "2.0", id: 1, method: "initialize" },
  params: { protocolVersion: "2025-06-18", capabilities: {}, clientInfo: { name: "raw", version: "1" } },
};
const initialize = (name: string, headers: Record<string, string> = {}) =>
  platform.post(`/mcp/${name}`, INITIALIZE, { accept: "application/json, text/event-stream", ...headers });
const bearer = async (claims: object = {}) => ({
  authorization: `Bearer ${await issuer.sign({ sub: "client:raw", ...claims })}`,
});

test("a client of the MCP SDK finds the issuer, logs in and calls a tool", async () => {
  const client = new Client({ name: "ordinary", version: "1" });
  const authProvider = new ClientCredentialsProvider({
    ...{ clientId: "robot", clientSecret: "robot's" },
    ...{ clientName: "robot", expectedIssuer: issuer.url },
  });
  const transport = new StreamableHTTPClientTransport(new URL(platform.mcp("open")), { authProvider });
  await client.connect(transport);
  try {
    const { content } = await client.callTool({ name: "echo", arguments: { message: "hello" } });
    expect(content).toEqual([{ type: "text", text: "Echo: hello" }]);
    expect(resources).toEqual([platform.mcp("open")]);
  } finally {
    await client.close();
  }
}, 30_000);

describe("a server that needs a login", () => {
  test("has metadata that name the resource and its issuers (RFC 9728)", async () => {
    const answer = await fetch(`${platform.url}/.well-known/oauth-protected-resource/mcp/open`);
    expect(await answer.json()).toEqual({
      resource: platform.mcp("open"),
      authorization_servers: [issuer.url],
      bearer_methods_supported: ["header"],
    });
  });

  test("refuses a request without login, and names the metadata", async () => {
    const answer = await initialize("open");
    expect([answer.status, answer.headers.get("www-authenticate")]).toEqual([
      401,
      `Bearer resource_metadata="${platform.url}/.well-known/oauth-protected-resource/mcp/open", DPoP`,
    ]);
    expect(await answer.json()).toMatchObject({ id: 1, error: { data: { reason: "UNAUTHENTICATED" } } });
  });

  test.each<[string, string, () => Promise<Record<string, string>>]>([
    ["an expired token", "expired", () => bearer({ exp: 1_700_000_000 })],
    ["a token for another audience", "audience", () => bearer({ aud: "other" })],
    ["a token of an unknown subject", "not_mapped", () => bearer({ sub: "eve" })],
  ])("refuses %s, and says that it is invalid", async (_, fault, headers) => {
    const answer = await initialize("open", await headers());
    expect(answer.status).toBe(401);
    expect(answer.headers.get("www-authenticate")).toContain('error="invalid_token"');
    expect(await answer.json()).toMatchObject({ error: { data: { metadata: { fault } } } });
  });

  test("is not reached by a token in the headers instead of the login", async () => {
    expect((await initialize("open", { authorization: "DPoP abc", dpop: "x.y.z" })).status).toBe(401);
    const message = { id: 1, method: "tools/call", params: { name: "echo", arguments: { message: "x" } } };
    expect(JSON.stringify(await (await platform.post("/mcp/message/open", message)).json())).not.toContain(
      "Echo",
    );
  });

  test("continues a session for the login that began it, and for no other", async () => {
    const begun = await initialize("open", await bearer({ aud: "depute" }));
    const session = begun.headers.get("mcp-session-id") ?? "";
    expect([begun.status, session]).toEqual([200, expect.stringMatching(/./)]);
    const ping = async (claims: object) => {
      const headers = { ...(await bearer({ aud: "depute", ...claims })), "mcp-session-id": session };
      const body = { jsonrpc: "2.0", id: 2, method: "ping" };
      const accept = "application/json, text/event-stream";
      return (await platform.post("/mcp/open", body, { ...headers, accept })).status;
    };
    expect(await ping({})).toBe(200);
    expect(await ping({ sub: "client:other" })).toBe(404);
  });

  test("shows a task to the login that began it, and to no other", async () => {
    const connect = async (sub: string) => {
      const client = new Client({ name: "ordinary", version: "1" });
      const requestInit = { headers: await bearer({ aud: "depute", sub }) };
      await client.connect(new StreamableHTTPClientTransport(new URL(platform.mcp("open")), { requestInit }));
      return client;
    };
    const ANY = fromJsonSchema<Json>({ type: "object" });
    const clients = await Promise.all(["client:one", "client:one", "client:two"].map(connect));
    const [one, sameLogin, two] = clients as [Client, Client, Client];
    const call = { name: "simulate-research-query", arguments: { topic: "logins" }, task: { ttl: 60_000 } };
    const { task } = await one.request({ method: "tools/call", params: call }, ANY);
    const { taskId } = task;
    const get = (client: Client) => client.request({ method: "tasks/get", params: { taskId } }, ANY);
    const list = async (client: Client) =>
      (await client.request({ method: "tasks/list", params: {} }, ANY)).tasks.map(
        (each: Json) => each.taskId,
      );
    expect((await get(sameLogin)).taskId).toBe(taskId);
    expect(await list(sameLogin)).toEqual([taskId]);
    await expect(get(two)).rejects.toMatchObject({
      code: -32602,
      message: "the task does not exist: check its id",
    });
    expect(await list(two)).toEqual([]);
    await Promise.all(clients.map((client) => client.close()));
  }, 30_000);
});

test("a server without a login has no metadata, and its clients are not sent to an issuer", async () => {
  const answer = await fetch(`${platform.url}/.well-known/oauth-protected-resource/mcp/tokens`);
  expect(answer.status).toBe(404);
  expect(await answer.json()).toMatchObject({
    error: { data: { detail: "/mcp/tokens asks for no login; a login needs a configured issuer" } },
  });
  expect((await initialize("tokens")).status).toBe(200);
});
