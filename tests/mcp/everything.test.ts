import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { connect, grant, holderFetch, member, type Revision, refusal, textOf } from "./holder.ts";
import { EVERYTHING, type McpPlatform, startPlatform } from "./platform.ts";

let platform: McpPlatform;
beforeAll(async () => {
  platform = await startPlatform({
    everything: { stdio: EVERYTHING, maps: ["everything"], revision: "legacy" },
  });
}, 60_000);
afterAll(() => platform.stop());

const REVISIONS: Revision[] = ["2026-07-28", "2025-11-25"];

describe.each(REVISIONS)("the official client of revision %s over HTTP", (revision) => {
  test("lists and calls what its token grants, and nothing else", async () => {
    const holder = await grant(platform, [["compute", "execute", "everything/echo"]]);
    const client = await connect(platform.mcp("everything"), revision, holderFetch(holder));
    const { tools } = await client.listTools();
    expect(tools.map(({ name }) => name)).toEqual(["echo"]);
    const result = await client.callTool({ name: "echo", arguments: { message: "hello" } });
    expect(textOf(result)).toBe("Echo: hello");
    const refused = await refusal(client.callTool({ name: "get-sum", arguments: { a: 1, b: 2 } }));
    expect(refused).toMatchObject({
      code: -32001,
      message: expect.stringContaining("DCT verification failed"),
      data: {
        type: "capability_not_granted",
        requested: { namespace: "compute", action: "execute", resource: "everything/get-sum" },
        granted: [{ namespace: "compute", action: "execute", resource: "everything/echo" }],
      },
    });
    await client.close();
  });

  test("carries its token in _delegateos", async () => {
    const holder = await grant(platform, [["compute", "execute", "everything/**"]]);
    const url = platform.mcp("everything");
    const client = await connect(url, revision);
    const args = { message: "inside" };
    const params = { name: "echo", arguments: args, _delegateos: member(holder, url, args) };
    expect(textOf(await client.callTool(params))).toBe("Echo: inside");
    await client.close();
  });

  test("gets a refusal that names the argument outside the tool's schema, and the server gets no call", async () => {
    const holder = await grant(platform, [["compute", "execute", "everything/**"]]);
    const client = await connect(platform.mcp("everything"), revision, holderFetch(holder));
    expect(await client.callTool({ name: "get-sum", arguments: { a: "one", b: 2 } })).toMatchObject({
      isError: true,
      content: [{ type: "text", text: expect.stringContaining("/arguments/a: must be number") }],
      _meta: {
        "depute.dev/refusal": {
          reason: "INVALID_REQUEST",
          violations: [{ path: "/arguments/a", message: "must be number" }],
        },
      },
    });
    await client.close();
  });

  test("gets nothing without a token (M1)", async () => {
    const client = await connect(platform.mcp("everything"), revision);
    expect((await client.listTools()).tools).toEqual([]);
    const refused = await refusal(client.callTool({ name: "echo", arguments: { message: "hello" } }));
    expect(refused).toMatchObject({ code: -32001, data: { type: "capability_not_granted", granted: [] } });
    await client.close();
  });
});
