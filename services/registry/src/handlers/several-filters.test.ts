import { AgentStatus } from "@depute/contracts/depute/registry/v1/agent_pb";
import type { DiscoverCapabilitiesResponse } from "@depute/contracts/depute/registry/v1/discovery_service_pb";
import { afterEach, describe, expect, it } from "vitest";
import { capability } from "../testing/capability.ts";
import { ALICE, as, type Platform, startPlatform } from "../testing/platform.ts";

let platform: Platform;
afterEach(() => platform.stop());

describe("several filters", () => {
  let requests = 0;

  async function start() {
    platform = await startPlatform();
    await agent("alpha", ["eu", "fast"], "acme");
    await agent("beta", ["eu"], "acme");
    await agent("gamma", ["eu", "fast"], "other");
  }

  async function agent(id: string, tags: string[], organization: string) {
    const record = { id, tags, organization, principal: ALICE, protocols: ["nekte/0.2"] };
    await platform.agents.registerAgent({ requestId: `r${requests++}`, agent: record }, as(ALICE));
    const capabilities = [
      { ...capability("sum"), cat: "math" },
      { ...capability("read"), cat: "text" },
    ];
    await platform.agents.publishCapabilities(
      { requestId: `r${requests++}`, agentId: id, capabilities },
      as(ALICE),
    );
  }

  const names = ({ capabilities }: DiscoverCapabilitiesResponse) =>
    capabilities.map((each) => `${each.agentId}/${each.capability.value?.id}`);
  const find = async (request: Parameters<Platform["discovery"]["discoverCapabilities"]>[0]) =>
    names(await platform.discovery.discoverCapabilities(request));

  it("finds the entries that pass every filter, in list order", async () => {
    await start();
    expect(await find({ tags: ["eu", "FAST"] })).toEqual([
      "alpha/read",
      "gamma/read",
      "alpha/sum",
      "gamma/sum",
    ]);
    expect(await find({ tags: ["fast"], organization: "acme" })).toEqual(["alpha/read", "alpha/sum"]);
    expect(await find({ tags: ["eu"], filter: { category: "Math" } })).toEqual([
      "alpha/sum",
      "beta/sum",
      "gamma/sum",
    ]);
    expect(await find({ organization: "acme", filter: { id: "sum" } })).toEqual(["alpha/sum", "beta/sum"]);
    expect(
      await find({ protocol: "nekte/0.2", tags: ["fast"], filter: { id: "sum", category: "text" } }),
    ).toEqual([]);
    expect(await find({ tags: ["eu", "slow"] })).toEqual([]);
  });

  it("continues page by page", async () => {
    await start();
    const foundIds: string[] = [];
    let pageToken = "";
    do {
      const page = await platform.discovery.discoverCapabilities({
        tags: ["eu", "fast"],
        pageSize: 1,
        pageToken,
      });
      foundIds.push(...names(page));
      pageToken = page.nextPageToken;
    } while (pageToken !== "");
    expect(foundIds).toEqual(["alpha/read", "gamma/read", "alpha/sum", "gamma/sum"]);
  });

  it("applies each change at once, and keeps all after a restart", async () => {
    await start();
    const fast = () => find({ tags: ["eu", "fast"], filter: { id: "sum" } });
    expect(await fast()).toEqual(["alpha/sum", "gamma/sum"]);
    await agent("alpha", ["eu"], "acme");
    expect(await fast()).toEqual(["gamma/sum"]);
    await agent("beta", ["eu", "fast"], "acme");
    expect(await fast()).toEqual(["beta/sum", "gamma/sum"]);
    await platform.agents.deregisterAgent({ agentId: "gamma" }, as(ALICE));
    expect(await fast()).toEqual(["beta/sum"]);
    await platform.agents.setAgentStatus({ agentId: "beta", status: AgentStatus.DEPRECATED }, as(ALICE));
    expect(await fast()).toEqual([]);
    await platform.agents.setAgentStatus({ agentId: "beta", status: AgentStatus.ACTIVE }, as(ALICE));
    await agent("gamma", ["eu", "fast"], "other");
    expect(await fast()).toEqual(["beta/sum", "gamma/sum"]);
    await platform.restart();
    expect(await fast()).toEqual(["beta/sum", "gamma/sum"]);
  });
});
