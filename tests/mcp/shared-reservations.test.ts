import { createClient } from "@connectrpc/connect";
import { AuditService } from "@depute/contracts/depute/tokens/v1/audit_service_pb";
import { SpendService } from "@depute/contracts/depute/tokens/v1/spend_service_pb";
import { afterAll, beforeAll, expect, test } from "vitest";
import { connect, type Grant, grant, holderFetch, refusal, textOf } from "./holder.ts";
import { EVERYTHING, type McpPlatform, startPlatform } from "./platform.ts";

const COST = 100;
const rule = { namespace: "compute", action: "execute", resource: "echo", cost: COST };
const map = { tools: { echo: rule } };

let platform: McpPlatform;
beforeAll(async () => {
  const upstream = { stdio: EVERYTHING, map, definitionTtlMs: 3_600_000 };
  platform = await startPlatform({ one: upstream, other: upstream });
}, 60_000);
afterAll(() => platform.stop());

const holder = (budget: number) => grant(platform, [["compute", "execute", "echo"]], budget);
const clientOf = (held: Grant, name = "one") => connect(platform.mcp(name), "2026-07-28", holderFetch(held));
const budgetOf = async ({ token }: Grant) => {
  const spend = createClient(SpendService, platform.transport);
  const { levels } = await spend.getBudget({ token: { token, format: "delegateos-sjt-v1" } });
  return levels.map(({ spentMicrocents, reservedMicrocents }) => [spentMicrocents, reservedMicrocents]);
};
const reservationsOf = async ({ revocationId }: Grant) => {
  const audit = createClient(AuditService, platform.transport);
  const { records } = await audit.listAuditRecords({
    filter: { kind: "reserve", revocationId },
    pageSize: 1_000,
  });
  return records.length;
};
const echo = { name: "echo", arguments: { message: "there" } };

test("calls in quick succession share reservations, and are charged exactly", async () => {
  const held = await holder(1_000_000);
  const client = await clientOf(held);
  for (let i = 0; i < 40; i++) expect(textOf(await client.callTool(echo))).toContain("there");
  await expect.poll(() => budgetOf(held), { timeout: 10_000 }).toEqual([[40n * BigInt(COST), 0n]]);
  expect(await reservationsOf(held)).toBeLessThan(20);
  await client.close();
}, 60_000);

test("every call that the budget allows is made at two servers, and not one more", async () => {
  const calls = 30;
  const held = await holder(calls * COST);
  const clients = [await clientOf(held, "one"), await clientOf(held, "other")];
  let made = 0;
  for (let denied = 0, at = 0; denied < 200 && made < calls; at++) {
    const outcome = await Promise.allSettled([clients[at % 2]?.callTool(echo)]);
    if (outcome[0]?.status === "fulfilled") made++;
    else denied++;
    // An unused part of a reservation at the other server is free again within a second.
    if (outcome[0]?.status === "rejected") await new Promise((resolve) => setTimeout(resolve, 50));
  }
  expect(made).toBe(calls);
  await expect.poll(() => budgetOf(held), { timeout: 10_000 }).toEqual([[BigInt(calls * COST), 0n]]);
  const [client] = clients;
  expect(await refusal(client?.callTool(echo) as Promise<unknown>)).toMatchObject({
    code: -32001,
    data: { type: "budget_exceeded" },
  });
  for (const one of clients) await one.close();
}, 60_000);
