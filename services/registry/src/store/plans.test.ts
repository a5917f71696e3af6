import { AgentHealth, AgentStatus } from "@depute/contracts/depute/registry/v1/agent_pb";
import { openStore, type SqlValue, type Store } from "@depute/store";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { type AgentFilter, listQuery } from "./agents.ts";
import { BEGINNING, type CapabilityFilter, offersQuery } from "./capabilities.ts";
import { migrations } from "./migrations.ts";
import { offerVersionsQuery } from "./offers.ts";

let store: Store;
beforeEach(async () => {
  store = await openStore({
    memory: true,
    migrations,
    onError: (error) => {
      throw error;
    },
  });
});
afterEach(() => store.close());

async function planOf(sql: string, params: readonly SqlValue[]): Promise<string[]> {
  const rows = await store.read((tx) => tx.all<{ detail: string }>(`EXPLAIN QUERY PLAN ${sql}`, params));
  return rows.map(({ detail }) => detail);
}

const SIGHT = { viewer: { principal: "p" }, view: { now: 0, asOf: 0 } };
const SORTS = expect.stringContaining("TEMP B-TREE");
const SCANS = expect.stringMatching(/^SCAN/);

describe("lists are read by an index, in its order", () => {
  const all: AgentFilter = {
    status: AgentStatus.ACTIVE,
    health: AgentHealth.UNSPECIFIED,
    capabilityId: "",
    organization: "",
    principal: "",
  };

  it.each<[string, Partial<AgentFilter>, string]>([
    ["agents", {}, "SEARCH a USING INDEX agents_by_status (status=? AND id>?)"],
    [
      "living ones",
      { health: AgentHealth.ALIVE },
      "SEARCH a USING INDEX agents_by_status (status=? AND id>?)",
    ],
    [
      "those of an organization",
      { organization: "o" },
      "SEARCH a USING INDEX agents_by_organization (organization=? AND status=? AND id>?)",
    ],
    [
      "those of a principal",
      { principal: "p" },
      "SEARCH a USING INDEX agents_by_principal (principal=? AND status=? AND id>?)",
    ],
    [
      "those that offer a capability",
      { capabilityId: "c" },
      "SEARCH c USING COVERING INDEX capabilities_by_id (id=? AND agent_id>?)",
    ],
  ])("%s", async (_, filter, expected) => {
    const { sql, params } = listQuery({ ...all, ...filter }, { after: "", ...SIGHT });
    const plan = await planOf(sql, params);
    expect(plan[0]).toBe(expected);
    expect(plan).not.toContainEqual(SORTS);
    expect(plan).not.toContainEqual(SCANS);
  });

  it("lost agents, of which there are few", async () => {
    const { sql, params } = listQuery({ ...all, health: AgentHealth.LOST }, { after: "", ...SIGHT });
    const plan = await planOf(sql, params);
    expect(plan[0]).toBe("SEARCH l USING INDEX leases_by_expiry (expire_time<?)");
    expect(plan).not.toContainEqual(SCANS);
  });

  it("an offer's versions", async () => {
    const { sql, params } = offerVersionsQuery("o", { before: 9, viewer: SIGHT.viewer });
    const plan = await planOf(sql, params);
    expect(plan[0]).toContain("(offer_id=? AND sequence<?)");
    expect(plan).not.toContainEqual(SORTS);
    expect(plan).not.toContainEqual(SCANS);
  });

  it.each<[string, CapabilityFilter, string]>([
    ["capabilities", {}, "capabilities_by_id ((id,agent_id)>(?,?) AND (id,agent_id)<(?,?))"],
    ["those of an id", { id: "i" }, "capabilities_by_id (id=?"],
    ["those of a category", { category: "c" }, "capabilities_by_category (category_key=?"],
    ["those of an agent", { agentId: "a" }, "(agent_id=?"],
    ["those of a tag", { keys: ["tx"] }, "(key=?"],
    ["one of an agent", { agentId: "a", id: "i" }, "=? AND "],
  ])("%s", async (_, filter, expected) => {
    const { sql, params } = offersQuery(
      filter,
      { after: BEGINNING, until: BEGINNING },
      SIGHT,
      filter.keys?.[0],
    );
    const plan = await planOf(`SELECT c.id ${sql}`, params);
    expect(plan[0]).toMatch(/^SEARCH [cw] USING/);
    expect(plan[0]).toContain(expected);
    expect(plan).not.toContainEqual(SORTS);
    expect(plan).not.toContainEqual(SCANS);
  });
});
