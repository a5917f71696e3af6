import { AgentVisibility } from "@depute/contracts/depute/registry/v1/agent_pb";
import { expect, it } from "vitest";
import { capability } from "../testing/capability.ts";
import { ALICE, as, BOB, startPlatform } from "../testing/platform.ts";

it("a list that reads many rows answers with a partial page, and continues from its end", async () => {
  const platform = await startPlatform();
  try {
    const many = Array.from({ length: 256 }, (_, i) => capability(`c${String(i).padStart(3, "0")}`));
    // Publishes 5,120 capabilities. The caller sees only the first and the last of the list.
    for (let i = 0; i < 20; i++) {
      const id = `a${String(i).padStart(2, "0")}`;
      const agent = { id, principal: ALICE, visibility: AgentVisibility.NAMED };
      await platform.agents.registerAgent({ requestId: id, agent }, as(ALICE));
      await platform.agents.publishCapabilities(
        { requestId: `p${id}`, agentId: id, capabilities: many },
        as(ALICE),
      );
    }
    for (const [id, name] of [
      ["first", "a"],
      ["last", "z"],
    ] as const) {
      await platform.agents.registerAgent({ requestId: id, agent: { id, principal: BOB } }, as(BOB));
      await platform.agents.publishCapabilities(
        { requestId: `p${id}`, agentId: id, capabilities: [capability(name)] },
        as(BOB),
      );
    }
    const pages: string[][] = [];
    let pageToken = "";
    do {
      const page = await platform.discovery.discoverCapabilities({ pageToken }, as(BOB));
      pages.push(page.capabilities.map(({ agentId }) => agentId));
      pageToken = page.nextPageToken;
    } while (pageToken !== "");
    expect(pages).toEqual([["first"], [], ["last"]]);
    expect(await platform.discovery.resolveCapability({ capabilityId: "z" }, as(BOB))).toMatchObject({
      agentId: "last",
    });
  } finally {
    await platform.stop();
  }
});
