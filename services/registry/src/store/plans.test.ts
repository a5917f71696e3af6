import { AgentHealth, AgentStatus } from "@depute/contracts/depute/registry/v1/agent_pb";
import { openStore, row, type SqlValue, type Store, text } from "@depute/store";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { type AgentFilter, listQuery } from "./agents.ts";
import { BEGINNING, type CapabilityFilter, capabilitiesQuery } from "./capabilities.ts";
import { type KeyQuery, walkQuery } from "./key-walk.ts";
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
  const rows = await store.read((tx) => tx.all(row({ detail: text }), `EXPLAIN QUERY PLAN ${sql}`, params));
  return rows.map(({ detail }) => detail);
}

const VIEW = { viewer: { principal: "p" }, view: { now: 0, asOf: 0 } };
const SORTS = expect.stringContaining("TEMP B-TREE");
const SCANS = expect.stringMatching(/^SCAN/);

describe("lists are read by an index, in its order", () => {
  const all: AgentFilter = {
    status: AgentStatus.ACTIVE,
    health: AgentHealth.UNSPECIFIED,
    capabilityId: "",
    organization: "",
    principal: "",
    keys: [],
  };

  it.each<[string, Partial<AgentFilter>, string]>([
    ["agents", {}, "SEARCH a USING INDEX agents_by_status (status=? AND id>?)"],
    [
      "live agents",
      { health: AgentHealth.ALIVE },
      "SEARCH a USING INDEX agents_by_status (status=? AND id>?)",
    ],
    [
      "agents of an organization",
      { organization: "o" },
      "SEARCH a USING INDEX agents_by_organization (organization=? AND status=? AND id>?)",
    ],
    [
      "agents of a principal",
      { principal: "p" },
      "SEARCH a USING INDEX agents_by_principal (principal=? AND status=? AND id>?)",
    ],
    [
      "agents with a capability",
      { capabilityId: "c" },
      "SEARCH c USING COVERING INDEX capabilities_by_id (id=? AND agent_id>?)",
    ],
  ])("%s", async (_, filter, expected) => {
    const { sql, params } = listQuery({ ...all, ...filter }, { after: "", ...VIEW });
    const plan = await planOf(sql, params);
    expect(plan[0]).toBe(expected);
    expect(plan).not.toContainEqual(SORTS);
    expect(plan).not.toContainEqual(SCANS);
  });

  it("lost agents, which are few", async () => {
    const { sql, params } = listQuery({ ...all, health: AgentHealth.LOST }, { after: "", ...VIEW });
    const plan = await planOf(sql, params);
    expect(plan[0]).toBe("SEARCH l USING INDEX leases_by_expiry (expire_time<?)");
    expect(plan).not.toContainEqual(SCANS);
  });

  it("an offer's versions", async () => {
    const { sql, params } = offerVersionsQuery("o", { before: 9, viewer: VIEW.viewer });
    const plan = await planOf(sql, params);
    expect(plan[0]).toContain("(offer_id=? AND sequence<?)");
    expect(plan).not.toContainEqual(SORTS);
    expect(plan).not.toContainEqual(SCANS);
  });

  it.each<[string, CapabilityFilter, string]>([
    ["capabilities", {}, "capabilities_by_id ((id,agent_id)>(?,?) AND (id,agent_id)<(?,?))"],
    ["capabilities of an id", { id: "i" }, "capabilities_by_id (id=?"],
    ["those of an agent", { agentId: "a" }, "(agent_id=?"],
    ["one of an agent", { agentId: "a", id: "i" }, "=? AND "],
  ])("%s", async (_, filter, expected) => {
    const { sql, params } = capabilitiesQuery(filter, { after: BEGINNING, until: BEGINNING }, VIEW);
    const plan = await planOf(`SELECT c.id ${sql}`, params);
    expect(plan[0]).toMatch(/^SEARCH c USING/);
    expect(plan[0]).toContain(expected);
    expect(plan).not.toContainEqual(SORTS);
    expect(plan).not.toContainEqual(SCANS);
  });

  it.each<[string, KeyQuery, string]>([
    [
      "agents of several keys",
      { resource: "agents", keys: ["tx", "ty"] },
      "(key=? AND agent_id>? AND agent_id<?)",
    ],
    [
      "capabilities of several keys",
      { resource: "capabilities", keys: ["tx", "cy"] },
      "(key=? AND (id,agent_id)>(?,?) AND (id,agent_id)<(?,?))",
    ],
    [
      "capabilities of an id",
      { resource: "capabilities", keys: ["tx", "cy"], id: "i" },
      "(key=? AND id=? AND agent_id>? AND agent_id<?)",
    ],
  ])("%s", async (_, query, expected) => {
    const { sql, params } = walkQuery(query, "tx", BEGINNING, BEGINNING);
    const plan = await planOf(sql, params);
    expect(plan[0]).toMatch(/^SEARCH w USING COVERING INDEX/);
    expect(plan[0]).toContain(expected);
    expect(plan).not.toContainEqual(SORTS);
    expect(plan).not.toContainEqual(SCANS);
  });
});
