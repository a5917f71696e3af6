import { durationFromMs } from "@bufbuild/protobuf/wkt";
import { AgentHealth, AgentStatus, AgentVisibility } from "@depute/contracts/depute/registry/v1/agent_pb";
import { afterEach, describe, expect, it } from "vitest";
import { capability } from "../testing/capability.ts";
import { ALICE, as, BOB, type Platform, startPlatform } from "../testing/platform.ts";
import { refusal } from "../testing/refusal.ts";

let platform: Platform;
afterEach(() => platform.stop());

describe("agents by tags and protocol", () => {
  let requests = 0;
  const register = (id: string, parts: Record<string, unknown>) =>
    platform.agents.registerAgent(
      { requestId: `r${requests++}`, agent: { id, principal: ALICE, ...parts } },
      as(ALICE),
    );
  const list = async (filter: Parameters<Platform["agents"]["listAgents"]>[0], caller = ALICE) => {
    const ids: string[] = [];
    let pageToken = "";
    do {
      const page = await platform.agents.listAgents({ pageSize: 1, ...filter, pageToken }, as(caller));
      ids.push(...page.agents.map(({ id }) => id));
      pageToken = page.nextPageToken;
    } while (pageToken !== "");
    return ids;
  };

  async function start() {
    platform = await startPlatform();
    await register("a", { tags: ["EU", "fast"], protocols: ["asp/0.1"], organization: "acme" });
    await register("b", { tags: ["eu"], protocols: ["nekte/0.2", "asp/0.1"] });
    await register("c", { tags: ["eu", "fast"], leaseDuration: durationFromMs(1_000) });
    await register("d", { tags: ["eu", "fast"], visibility: AgentVisibility.NAMED });
    await register("e", {});
  }

  it("are found page by page, in the order of their ids", async () => {
    await start();
    expect(await list({ tags: ["eu"] })).toEqual(["a", "b", "c", "d"]);
    expect(await list({ tags: ["Fast", "eu"] })).toEqual(["a", "c", "d"]);
    expect(await list({ protocol: "ASP/0.1" })).toEqual(["a", "b"]);
    expect(await list({ protocol: "asp/0.1", tags: ["fast"] })).toEqual(["a"]);
    expect(await list({ tags: ["eu", "slow"] })).toEqual([]);
    expect(await list({})).toEqual(["a", "b", "c", "d", "e"]);
  });

  it("are filtered by the other filters and by visibility", async () => {
    await start();
    await platform.agents.publishCapabilities(
      { requestId: "p", agentId: "a", capabilities: [capability("sum")] },
      as(ALICE),
    );
    await platform.agents.setAgentStatus({ agentId: "b", status: AgentStatus.DEPRECATED }, as(ALICE));
    platform.clock.advance(1_000);
    expect(await list({ tags: ["fast"] }, BOB)).toEqual(["a", "c"]);
    expect(await list({ tags: ["fast"], organization: "acme" })).toEqual(["a"]);
    expect(await list({ tags: ["eu"], capabilityId: "sum" })).toEqual(["a"]);
    expect(await list({ tags: ["eu"], status: AgentStatus.DEPRECATED })).toEqual(["b"]);
    expect(await list({ tags: ["fast"], health: AgentHealth.UNKNOWN })).toEqual(["a", "d"]);
    expect(await list({ tags: ["fast"], principal: BOB })).toEqual([]);
    await register("a", { tags: [] });
    expect(await list({ tags: ["fast"], health: AgentHealth.UNKNOWN })).toEqual(["d"]);
  });

  it("continue only with a page token of the same filters", async () => {
    await start();
    const { nextPageToken: pageToken } = await platform.agents.listAgents({ tags: ["eu"], pageSize: 1 });
    expect(await refusal(platform.agents.listAgents({ tags: ["fast"], pageToken }))).toMatchObject({
      reason: "PAGE_TOKEN_INVALID",
    });
  });
});
