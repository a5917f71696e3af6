import { durationFromMs } from "@bufbuild/protobuf/wkt";
import { AgentHealth, AgentStatus } from "@depute/contracts/depute/registry/v1/agent_pb";
import { fromTimestamp } from "@depute/core";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { capability } from "../testing/capability.ts";
import { ALICE, as, BOB, type Platform, startPlatform } from "../testing/platform.ts";
import { refusal } from "../testing/refusal.ts";

const START = Date.UTC(2026, 0, 1);

let platform: Platform;
let requests = 0;
beforeEach(async () => {
  platform = await startPlatform();
});
afterEach(() => platform.stop());

const newRequest = () => `request-${++requests}`;

function register(agent: Record<string, unknown>, principal = "", requestId = newRequest()) {
  const options = principal === "" ? {} : as(principal);
  return platform.agents.registerAgent({ requestId, agent: { principal, ...agent } }, options);
}

const ids = (page: { agents: { id: string }[] }) => page.agents.map(({ id }) => id);

describe("RegisterAgent", () => {
  it("stores the owner's members and sets the registry's", async () => {
    const manifest = {
      id: "pm-1",
      systemPrompt: "Plan.",
      allowedAgents: ["analyst-1", "qa-1"],
      delegateRules: { "analyst-1": { whenToDelegate: "When data has to be analysed." } },
      overseer: { case: "overseerId" as const, value: "qa-1" },
      mcpBindings: [{ serverId: "DocsServer", scopes: ["read:docs"], allowedTools: ["read_file"] }],
    };
    const ownMembers = {
      id: "pm-1",
      displayName: "Project manager",
      description: "Plans.",
      version: "1.2.0",
      organization: "acme",
      leaseDuration: durationFromMs(10_000),
      manifest,
    };
    const { agent } = await register(
      { ...ownMembers, status: AgentStatus.REMOVED, capabilityIds: ["x"] },
      ALICE,
    );
    expect(agent).toMatchObject({ ...ownMembers, principal: ALICE, capabilityIds: [] });
    expect(agent).toMatchObject({ status: AgentStatus.ACTIVE, health: AgentHealth.UNKNOWN });
    expect(agent?.heartbeatTime).toBeUndefined();
    for (const name of ["createTime", "updateTime"] as const) {
      expect(fromTimestamp(agent?.[name] as never)).toBe(START);
    }
    expect(fromTimestamp(agent?.leaseExpireTime as never)).toBe(START + 10_000);
    expect((await platform.agents.getAgent({ agentId: "pm-1" })).agent).toEqual(agent);
    await expect.poll(() => platform.wakeUps).toEqual(["pm-1"]);
  });

  it("replaces the record of the same principal, and keeps its capabilities and creation time", async () => {
    await register({ id: "a", description: "old", organization: "acme" }, ALICE);
    await platform.agents.publishCapabilities(
      { requestId: newRequest(), agentId: "a", capabilities: [capability("sum"), capability("avg")] },
      as(ALICE),
    );
    platform.clock.advance(5_000);
    const { agent } = await register({ id: "a", description: "new" }, ALICE);
    expect(agent).toMatchObject({ description: "new", organization: "", capabilityIds: ["sum", "avg"] });
    expect(fromTimestamp(agent?.createTime as never)).toBe(START);
    expect(fromTimestamp(agent?.updateTime as never)).toBe(START + 5_000);
  });

  it("keeps an id for its first principal, also after removal", async () => {
    await register({ id: "a", description: "hers" }, ALICE);
    await platform.agents.deregisterAgent({ agentId: "a" }, as(ALICE));
    expect(await refusal(register({ id: "a" }, BOB))).toMatchObject({
      reason: "AGENT_EXISTS",
      metadata: { agent: "a" },
    });
    expect(await refusal(register({ id: "a" }))).toMatchObject({ reason: "AGENT_EXISTS" });
    expect((await platform.agents.getAgent({ agentId: "a" })).agent).toMatchObject({ principal: ALICE });
  });

  it("makes a removed agent active again", async () => {
    await register({ id: "a" }, ALICE);
    await platform.agents.deregisterAgent({ agentId: "a" }, as(ALICE));
    expect((await register({ id: "a" }, ALICE)).agent).toMatchObject({ status: AgentStatus.ACTIVE });
    expect(ids(await platform.agents.listAgents({}))).toEqual(["a"]);
  });

  it("refuses the principal of another caller", async () => {
    const call = platform.agents.registerAgent(
      { requestId: newRequest(), agent: { id: "a", principal: ALICE } },
      as(BOB),
    );
    expect(await refusal(call)).toMatchObject({ reason: "CALLER_NOT_ALLOWED", fields: ["agent.principal"] });
    expect(await refusal(platform.agents.getAgent({ agentId: "a" }))).toMatchObject({
      reason: "AGENT_NOT_FOUND",
    });
  });

  it("uses the caller as principal if the request names none", async () => {
    const call = platform.agents.registerAgent({ requestId: newRequest(), agent: { id: "a" } }, as(BOB));
    expect((await call).agent).toMatchObject({ principal: BOB });
  });

  it("lets the caller without credentials on an open loopback register for any principal", async () => {
    const call = platform.agents.registerAgent({ requestId: "r", agent: { id: "a", principal: ALICE } });
    expect((await call).agent).toMatchObject({ principal: ALICE });
  });

  it("refuses unknown credentials, also for calls that need none", async () => {
    expect(await refusal(platform.agents.getAgent({ agentId: "a" }, as("wrong")))).toMatchObject({
      reason: "UNAUTHENTICATED",
    });
  });

  it("accepts an instance only from its base agent's principal", async () => {
    expect(await refusal(register({ id: "a:1" }, ALICE))).toMatchObject({ fields: ["agent.id"] });
    await register({ id: "a" }, ALICE);
    expect(await refusal(register({ id: "a:1" }, BOB))).toMatchObject({
      reason: "INVALID_REQUEST",
      fields: ["agent.id"],
    });
    expect((await register({ id: "a:1" }, ALICE)).agent).toMatchObject({ id: "a:1" });
  });

  it("answers a replay with the first answer and changes nothing", async () => {
    const first = await register({ id: "a", description: "one" }, ALICE, "same");
    await register({ id: "a", description: "two" }, ALICE);
    platform.clock.advance(1_000);
    expect(await register({ id: "a", description: "one" }, ALICE, "same")).toEqual(first);
    expect((await platform.agents.getAgent({ agentId: "a" })).agent).toMatchObject({ description: "two" });
  });

  it("refuses a request id that the same caller used for a different request", async () => {
    await register({ id: "a" }, ALICE, "same");
    expect(await refusal(register({ id: "b" }, ALICE, "same"))).toMatchObject({
      reason: "REQUEST_ID_REUSED",
      metadata: { request_id: "same" },
    });
    const other = platform.agents.publishCapabilities({ requestId: "same", agentId: "a" }, as(ALICE));
    expect(await refusal(other)).toMatchObject({ reason: "REQUEST_ID_REUSED" });
    await register({ id: "b" }, BOB, "same");
  });

  it("recognizes a replay with map members in another order", async () => {
    const rule = { whenToDelegate: "Always." };
    const manifest = (delegateRules: Record<string, typeof rule>) => ({
      id: "a",
      systemPrompt: "",
      allowedAgents: ["x", "y"],
      delegateRules,
    });
    const first = await register({ id: "a", manifest: manifest({ x: rule, y: rule }) }, ALICE, "same");
    expect(await register({ id: "a", manifest: manifest({ y: rule, x: rule }) }, ALICE, "same")).toEqual(
      first,
    );
  });
});

describe("a lease", () => {
  it("expires without a heartbeat, and restarts with one", async () => {
    await register({ id: "a", leaseDuration: durationFromMs(1_000) }, ALICE);
    const health = async () => (await platform.agents.getAgent({ agentId: "a" })).agent?.health;
    platform.clock.advance(999);
    expect(await health()).toBe(AgentHealth.UNKNOWN);
    platform.clock.advance(1);
    expect(await health()).toBe(AgentHealth.LOST);
    const { agent } = await platform.agents.heartbeatAgent({ agentId: "a" }, as(ALICE));
    expect(agent).toMatchObject({ health: AgentHealth.ALIVE });
    expect(fromTimestamp(agent?.updateTime as never)).toBe(START);
    expect(fromTimestamp(agent?.heartbeatTime as never)).toBe(START + 1_000);
    expect(fromTimestamp(agent?.leaseExpireTime as never)).toBe(START + 2_000);
  });

  it("of zero duration never expires", async () => {
    await register({ id: "a" }, ALICE);
    platform.clock.advance(10 * 365 * 86_400_000);
    const { agent } = await platform.agents.getAgent({ agentId: "a" });
    expect(agent).toMatchObject({ health: AgentHealth.UNKNOWN });
    expect(agent?.leaseExpireTime).toBeUndefined();
  });

  it("wakes watchers when it restarts, and not at every heartbeat", async () => {
    await register({ id: "a", leaseDuration: durationFromMs(1_000) }, ALICE);
    await expect.poll(() => platform.wakeUps).toEqual(["a"]);
    await platform.agents.heartbeatAgent({ agentId: "a" }, as(ALICE));
    platform.clock.advance(5_000);
    await platform.agents.heartbeatAgent({ agentId: "a" }, as(ALICE));
    await expect.poll(() => platform.wakeUps).toEqual(["a", "a"]);
  });
});

describe("HeartbeatAgent and DeregisterAgent", () => {
  it("refuse callers other than the agent's principal", async () => {
    await register({ id: "a" }, ALICE);
    for (const call of ["heartbeatAgent", "deregisterAgent"] as const) {
      expect(await refusal(platform.agents[call]({ agentId: "a" }, as(BOB)))).toMatchObject({
        reason: "CALLER_NOT_ALLOWED",
      });
      expect(await refusal(platform.agents[call]({ agentId: "b" }, as(ALICE)))).toMatchObject({
        reason: "AGENT_NOT_FOUND",
        metadata: { agent: "b" },
      });
    }
  });

  it("removes an agent once, and refuses heartbeats afterwards", async () => {
    await register({ id: "a" }, ALICE);
    platform.clock.advance(1_000);
    const { agent } = await platform.agents.deregisterAgent({ agentId: "a" }, as(ALICE));
    expect(agent).toMatchObject({ status: AgentStatus.REMOVED });
    platform.clock.advance(1_000);
    expect((await platform.agents.deregisterAgent({ agentId: "a" }, as(ALICE))).agent).toEqual(agent);
    expect(await refusal(platform.agents.heartbeatAgent({ agentId: "a" }, as(ALICE)))).toMatchObject({
      reason: "AGENT_NOT_FOUND",
    });
    expect((await platform.agents.getAgent({ agentId: "a" })).agent).toEqual(agent);
  });
});

describe("ListAgents", () => {
  beforeEach(async () => {
    await register({ id: "c", organization: "acme", leaseDuration: durationFromMs(1_000) }, ALICE);
    await register({ id: "a", organization: "acme" }, ALICE);
    await register({ id: "d" }, BOB);
    await register({ id: "b", leaseDuration: durationFromMs(1_000) }, BOB);
    await register({ id: "e", organization: "acme" }, ALICE);
    await platform.agents.deregisterAgent({ agentId: "e" }, as(ALICE));
    for (const [agentId, principal] of [
      ["a", ALICE],
      ["b", BOB],
      ["e", ALICE],
    ] as const) {
      const call = platform.agents.publishCapabilities(
        { requestId: newRequest(), agentId, capabilities: [capability("sum")] },
        as(principal),
      );
      if (agentId === "e") expect(await refusal(call)).toMatchObject({ reason: "AGENT_NOT_FOUND" });
      else await call;
    }
    platform.clock.advance(2_000);
    await platform.agents.heartbeatAgent({ agentId: "a" }, as(ALICE));
  });

  it.each<[string, Record<string, unknown>, string[]]>([
    ["active ones by default", {}, ["a", "b", "c", "d"]],
    ["removed ones", { status: AgentStatus.REMOVED }, ["e"]],
    ["alive ones", { health: AgentHealth.ALIVE }, ["a"]],
    ["agents without a heartbeat", { health: AgentHealth.UNKNOWN }, ["d"]],
    ["lost ones", { health: AgentHealth.LOST }, ["b", "c"]],
    ["lost ones of an organization", { health: AgentHealth.LOST, organization: "acme" }, ["c"]],
    ["agents of an organization", { organization: "acme" }, ["a", "c"]],
    ["agents of a principal", { principal: BOB }, ["b", "d"]],
    ["agents with a capability", { capabilityId: "sum" }, ["a", "b"]],
    ["those that offer it and live", { capabilityId: "sum", health: AgentHealth.ALIVE }, ["a"]],
    ["those that offer it, of a principal", { capabilityId: "sum", principal: BOB }, ["b"]],
    ["none", { organization: "nobody" }, []],
  ])("contains %s", async (_, filter, expected) => {
    expect(ids(await platform.agents.listAgents(filter))).toEqual(expected);
    const paged: string[] = [];
    let pageToken = "";
    do {
      const page = await platform.agents.listAgents({ ...filter, pageSize: 1, pageToken });
      paged.push(...ids(page));
      pageToken = page.nextPageToken;
    } while (pageToken !== "");
    expect(paged).toEqual(expected);
  });

  it("refuses a page token of another list", async () => {
    const { nextPageToken } = await platform.agents.listAgents({ pageSize: 1 });
    for (const request of [
      { pageToken: nextPageToken, organization: "acme" },
      { pageToken: `${nextPageToken}A` },
    ]) {
      expect(await refusal(platform.agents.listAgents(request))).toMatchObject({
        reason: "PAGE_TOKEN_INVALID",
        fields: ["page_token"],
      });
    }
  });
});

describe("a restart", () => {
  it("keeps agents, capabilities and answered requests", async () => {
    await register({ id: "a", leaseDuration: durationFromMs(5_000) }, ALICE);
    const request = { requestId: "same", agentId: "a", capabilities: [capability("sum")] };
    const published = await platform.agents.publishCapabilities(request, as(ALICE));
    const agents = await platform.agents.listAgents({});
    const discovery = await platform.discovery.discoverCapabilities({ level: 2 });
    await platform.restart();
    expect(await platform.agents.listAgents({})).toEqual(agents);
    expect(await platform.discovery.discoverCapabilities({ level: 2 })).toEqual(discovery);
    expect(await platform.agents.publishCapabilities(request, as(ALICE))).toEqual(published);
  });
});
