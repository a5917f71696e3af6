import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { create, toBinary } from "@bufbuild/protobuf";
import { AgentHealth, AgentSchema, AgentStatus } from "@depute/contracts/depute/registry/v1/agent_pb";
import { CapabilityFullSchema } from "@depute/contracts/nekte/v1/nekte_pb";
import { openStore, row, text } from "@depute/store";
import { afterEach, beforeEach, expect, it } from "vitest";
import { NO_EXPIRY } from "../rules/agent.ts";
import { searchText } from "../rules/match.ts";
import { listAgents } from "./agents.ts";
import { BEGINNING, capabilitiesAt, listCapabilities, searchCapabilities } from "./capabilities.ts";
import { migrations } from "./migrations.ts";

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "depute-registry-"));
});
afterEach(() => rmSync(folder, { recursive: true }));

const open = (count: number) =>
  openStore({
    file: join(folder, "registry.sqlite"),
    migrations: migrations.slice(0, count),
    onError: (error) => {
      throw error;
    },
  });

const VIEW = { viewer: { principal: "somebody" }, view: { now: 1_000, asOf: 1_000 } };

it("finds agents from before versions, visibility and full text", async () => {
  const old = await open(1);
  await old.write(async (tx) => {
    for (const [id, organization, status] of [
      ["a", "acme", AgentStatus.ACTIVE],
      ["a:1", "", AgentStatus.ACTIVE],
      ["gone", "acme", AgentStatus.REMOVED],
    ] as const) {
      const record = toBinary(AgentSchema, create(AgentSchema, { id, organization, principal: "p" }));
      await tx.run(
        `INSERT INTO agents (id, principal, organization, version, status, create_time, update_time,
           capability_ids, record) VALUES (?, 'p', ?, '', ?, 1, 1, '["sum"]', ?)`,
        [id, organization, status, record],
      );
      await tx.run("INSERT INTO leases (agent_id, heartbeat_time, expire_time) VALUES (?, 1, ?)", [
        id,
        NO_EXPIRY,
      ]);
      await tx.run(
        `INSERT INTO capabilities (agent_id, id, category, category_key, digest, words, record)
         VALUES (?, 'sum', 'Math', 'math', 'd', ?, ?)`,
        [
          id,
          searchText({ id: "sum", category: "Math", description: "Adds numbers" }),
          toBinary(CapabilityFullSchema, create(CapabilityFullSchema, { id: "sum" })),
        ],
      );
    }
  });
  await old.close();

  const store = await open(migrations.length);
  await store.read(async (tx) => {
    const filter = {
      status: AgentStatus.ACTIVE,
      health: AgentHealth.UNSPECIFIED,
      capabilityId: "",
      organization: "",
      principal: "",
      keys: [],
    };
    const { agents } = await listAgents(tx, filter, { after: "", limit: 10, ...VIEW });
    expect(agents.map(({ record, revision }) => [record.id, revision])).toEqual([
      ["a", 0],
      ["a:1", 0],
    ]);
    const list = { ...VIEW, after: BEGINNING, limit: 10 };
    expect((await listCapabilities(tx, { keys: ["oacme"] }, list)).rows).toMatchObject([
      { agentId: "a", id: "sum" },
    ]);
    const find = async (words: string[], narrowed = {}) => {
      const { matches } = await searchCapabilities(tx, narrowed, words);
      const rows = matches.length === 0 ? [] : await capabilitiesAt(tx, narrowed, matches, VIEW);
      return rows.map(({ agentId }) => agentId).sort();
    };
    expect(await find(["sum"])).toEqual(["a", "a:1"]);
    expect(await find(["math"])).toEqual(["a", "a:1"]);
    expect(await find(["numb"])).toEqual(["a", "a:1"]);
    expect(await find(["numbers"], { keys: ["oacme"] })).toEqual(["a"]);
    expect(await find(["numbers"], { category: "MATH" })).toEqual(["a", "a:1"]);
    expect(await find(["numbers"], { category: "other" })).toEqual([]);
    const bases = await tx.all(
      row({ id: text, base_id: text }),
      "SELECT id, base_id FROM agents WHERE base_id IS NOT NULL",
    );
    expect(bases).toMatchObject([{ id: "a:1", base_id: "a" }]);
  });
  await store.close();
});
