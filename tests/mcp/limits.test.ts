import { AuditDecision } from "@depute/contracts/depute/tokens/v1/audit_service_pb";
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { connect, grant, holderFetch, refusal, textOf } from "./holder.ts";
import { EVERYTHING, type McpPlatform, startPlatform } from "./platform.ts";

let platform: McpPlatform;
beforeAll(async () => {
  const echo = { namespace: "compute", action: "execute", resource: "everything/echo" };
  platform = await startPlatform({
    everything: {
      stdio: EVERYTHING,
      revision: "legacy",
      map: { tools: { echo: { ...echo, limits: { callsPerMinute: 2 } } } },
    },
  });
}, 60_000);
afterAll(() => platform.stop());

/** Returns the gateway's count of calls of echo with this outcome. */
async function counted(outcome: string): Promise<number> {
  const text = await (await fetch(`${platform.url}/metrics`)).text();
  const labels = `server="everything",tool="echo",outcome="${outcome}"`;
  const [, count = "0"] = new RegExp(`depute_mcp_calls_total\\{${labels}\\} (\\d+)`).exec(text) ?? [];
  return Number(count);
}

test("each principal has the map's rate of a tool, and /metrics counts the calls", async () => {
  const callerOf = async () => {
    const holder = await grant(platform, [["compute", "execute", "everything/echo"]]);
    const client = await connect(platform.mcp("everything"), "2026-07-28", holderFetch(holder));
    return { client, call: () => client.callTool({ name: "echo", arguments: { message: "hello" } }) };
  };
  const [one, other] = [await callerOf(), await callerOf()];
  await one.call();
  await one.call();
  expect(await refusal(one.call())).toMatchObject({
    code: -32056,
    data: {
      reason: "LIMIT_EXCEEDED",
      metadata: { limit: "tool_calls_per_minute", max: "2", retry_after_ms: expect.stringMatching(/^\d+$/) },
    },
  });
  expect(textOf(await other.call())).toBe("Echo: hello");
  expect([await counted("answered"), await counted("limited")]).toEqual([3, 1]);
  await one.client.close();
  await other.client.close();
});

test("the audit log has each decision on a call of a tool, with the token's holder", async () => {
  const holder = await grant(platform, [["compute", "execute", "everything/echo"]]);
  const stranger = await grant(platform, [["compute", "execute", "everything/other"]]);
  for (const each of [holder, stranger]) {
    const client = await connect(platform.mcp("everything"), "2026-07-28", holderFetch(each));
    await client.callTool({ name: "echo", arguments: { message: "hello" } }).catch(() => {});
    await client.close();
  }
  const filter = { source: "gateway", resource: "mcp/everything/echo" };
  await vi.waitFor(
    async () => {
      const { records } = await platform.clients.audit.listAuditRecords({ filter, pageSize: 1000 });
      expect(records.slice(-2)).toMatchObject([
        { kind: "call_tool", rpc: "tools/call", wire: "mcp", decision: AuditDecision.ALLOWED },
        { decision: AuditDecision.DENIED, reason: "capability_not_granted" },
      ]);
      expect(records.at(-2)?.caller).toMatch(/^[\w-]{43}$/);
    },
    { timeout: 10_000, interval: 100 },
  );
});
