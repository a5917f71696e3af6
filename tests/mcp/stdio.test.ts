import { execFile } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";
import { createClient } from "@connectrpc/connect";
import { AuditService } from "@depute/contracts/depute/tokens/v1/audit_service_pb";
import { createRevocation } from "@depute/dct";
import { nativeEngine as engine } from "@depute/dct/native";
import type { Client } from "@modelcontextprotocol/client";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { call, type Json, result } from "../gateway/platform.ts";
import { grant, member, type Revision, refusal, textOf } from "./holder.ts";
import { EVERYTHING, filesystem, type McpPlatform, makeFiles, startPlatform } from "./platform.ts";
import { connectProxy, MAIN } from "./proxy-process.ts";

const { root, remove } = makeFiles();
const at = (path: string) => join(root, path);
let platform: McpPlatform;
beforeAll(async () => {
  platform = await startPlatform({});
}, 60_000);
afterAll(async () => {
  await platform.stop();
  remove();
});

const connect = (options: Parameters<typeof connectProxy>[1], revision?: Revision) =>
  connectProxy({ platform, folder: root }, options, revision);

describe.each<Revision>(["2026-07-28", "2025-11-25"])(
  "a token for docs:read on one folder, %s",
  (revision) => {
    test("lists and reads there and nothing else, until it is revoked", async () => {
      const holder = await grant(platform, [["docs", "read", at("docs/**")]]);
      const proxied = await connect(
        { server: filesystem(root), upstream: { maps: ["filesystem"] }, holder },
        revision,
      );
      await proxied.connected();
      const { client } = proxied;
      const names = (await client.listTools()).tools.map(({ name }) => name);
      expect(names).toContain("list_directory");
      expect(names).not.toContain("write_file");
      const read = (path: string) => client.callTool({ name: "read_text_file", arguments: { path } });
      expect(textOf(await read(at("docs/plan.txt")))).toBe("the plan");
      const list = await client.callTool({ name: "list_directory", arguments: { path: at("docs") } });
      expect(textOf(list)).toContain("[FILE] plan.txt");
      const outside = [
        "secret/key.txt",
        "docs-secret/key.txt",
        "docs/../secret/key.txt",
        "docs/link/key.txt",
      ];
      for (const path of [
        ...outside.map((one) => `${root}/${one}`),
        "~/x",
        "docs/plan.txt",
        `${at("docs")}/.."`,
      ]) {
        expect([path, (await refusal(read(path))).code]).toEqual([path, -32001]);
      }
      const revocation = createRevocation(engine, holder.revocationId, "block", holder.keypair);
      await result(
        platform.post("/delegateos", call("delegateos/revoke", { revocation, dct: holder.token })),
      );
      expect(await refusal(read(at("docs/plan.txt")))).toMatchObject({ data: { type: "revoked" } });
      await client.close();
    }, 30_000);
  },
);

test("without a token no list and no call succeeds, and a token may be in each request", async () => {
  const { client, connected } = await connect({ server: EVERYTHING, upstream: { maps: ["everything"] } });
  await connected();
  expect((await client.listTools()).tools).toEqual([]);
  const args = { message: "hello" };
  const denied = await refusal(client.callTool({ name: "echo", arguments: args }));
  expect(denied).toMatchObject({ code: -32001, data: { type: "capability_not_granted" } });
  const holder = await grant(platform, [["compute", "execute", "everything/echo"]]);
  const call = (params: Json) => client.callTool({ name: "echo", arguments: args, ...params });
  expect(textOf(await call({ _delegateos: member(holder, "mcp:server", args) }))).toBe("Echo: hello");
  const elsewhere = call({ _delegateos: member(holder, "mcp:another", args) });
  expect(await refusal(elsewhere)).toMatchObject({ data: { type: "invalid_proof", detail: "htu" } });
  const others = call({ _delegateos: member(holder, "mcp:server", { message: "another" }) });
  expect(await refusal(others)).toMatchObject({ data: { type: "invalid_proof", detail: "ard" } });
  const proved = member(holder, "mcp:server", args);
  expect(textOf(await call({ _delegateos: proved }))).toBe("Echo: hello");
  expect(await refusal(call({ _delegateos: proved }))).toMatchObject({ data: { type: "replayed_proof" } });
  await client.close();
}, 30_000);

describe("with the principal of the platform", () => {
  const echo = (client: Client, message: string) => client.callTool({ name: "echo", arguments: { message } });
  const decisions = async (kind: string, principal: string) => {
    const { records } = await createClient(AuditService, platform.transport).listAuditRecords({
      filter: { kind, principal },
      pageSize: 100,
    });
    return records.map(({ reason }) => reason);
  };

  test.each([
    ["the proxy opens a session for its calls and one for its token", true, ["", ""]],
    ["the proxy proves each call by a signature if another principal signed the sessions", false, ["", ""]],
  ])(
    "%s",
    async (_, isRight, opened) => {
      const holder = await grant(platform, [["compute", "execute", "everything/echo"]]);
      const { principal } = await platform.clients.tokens.getIssuer({});
      const flags = ["--platform-principal", isRight ? principal : holder.keypair.principal.id];
      const start = { server: EVERYTHING, upstream: { maps: ["everything"] }, holder, flags };
      const { client, connected } = await connect(start);
      await connected();
      for (const n of ["1", "2", "3", "4"]) expect(textOf(await echo(client, n))).toBe(`Echo: ${n}`);
      await client.close();
      const own = holder.keypair.principal.id;
      // Decisions are durable within a second of their calls.
      const within = { timeout: 5000 };
      await expect.poll(() => decisions("open_session", own), within).toEqual(opened);
      await expect.poll(() => decisions("verify_token", own), within).toEqual(["", "", "", ""]);
    },
    30_000,
  );
});

describe("sampling, which a server asks of its client", () => {
  const rights = [["compute", "execute", "everything/trigger-sampling-request"]] as const;
  const SAMPLING = { namespace: "llm", action: "generate", resource: "client" };
  const proxiedWith = async (more: readonly (readonly [string, string, string])[]) => {
    const holder = await grant(platform, [...rights, ...more]);
    const map = { methods: { "sampling/createMessage": SAMPLING } };
    const proxied = await connect({ server: EVERYTHING, upstream: { maps: ["everything"], map }, holder });
    proxied.client.setRequestHandler("sampling/createMessage", async () => ({
      model: "test",
      role: "assistant",
      content: { type: "text", text: "a sample" },
    }));
    await proxied.connected();
    return proxied.client;
  };
  const ask = (client: Client) =>
    client.callTool({ name: "trigger-sampling-request", arguments: { prompt: "p", maxTokens: 10 } });

  test("passes with a token that grants it", async () => {
    const client = await proxiedWith([["llm", "generate", "client"]]);
    expect(textOf(await ask(client))).toContain("a sample");
    await client.close();
  }, 30_000);

  test("is refused without", async () => {
    const client = await proxiedWith([]);
    const outcome = await ask(client).then(textOf, (thrown: Error) => thrown.message);
    expect(outcome).toContain("DCT verification failed");
    await client.close();
  }, 30_000);
});

test("a map is drafted from a server's list, and covers its tools", async () => {
  const { command, args } = filesystem(root);
  const { stdout } = await promisify(execFile)(process.execPath, [MAIN, "mcp-map", "--", command, ...args]);
  const draft = JSON.parse(stdout);
  expect(draft.tools.read_text_file).toMatchObject({
    namespace: "docs",
    action: "read",
    resource: { argument: "/path", form: "path" },
  });
  expect(draft.tools.write_file).toMatchObject({ namespace: "docs", action: "write" });
  expect(draft.tools.list_allowed_directories).toMatchObject({
    namespace: "compute",
    resource: "server/list_allowed_directories",
  });
  const holder = await grant(platform, [["docs", "read", at("docs/**")]]);
  const { client, connected } = await connect({ server: filesystem(root), upstream: { map: draft }, holder });
  await connected();
  const read = await client.callTool({ name: "read_text_file", arguments: { path: at("docs/plan.txt") } });
  expect(textOf(read)).toBe("the plan");
  await client.close();
}, 30_000);
