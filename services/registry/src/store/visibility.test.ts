import { create } from "@bufbuild/protobuf";
import {
  AgentHealth,
  AgentSchema,
  AgentStatus,
  AgentVisibility,
} from "@depute/contracts/depute/registry/v1/agent_pb";
import { openStore, ReadCache } from "@depute/store";
import fc from "fast-check";
import { expect, it } from "vitest";

import { createStoredAgent, type StoredAgent } from "../rules/agent.ts";
import { findVisible, listAgents, putRecord } from "./agents.ts";
import { putLease } from "./leases.ts";
import { addMember } from "./members.ts";
import { migrations } from "./migrations.ts";

const MEMORY = {
  recent: new ReadCache<StoredAgent>(10),
};
const PRINCIPALS = ["p", "q", "r", ""];
const ORGANIZATIONS = ["", "acme", "fine"];
const IDS = ["a", "b", "c", "d"];
const { PUBLIC, ORGANIZATION, NAMED, UNSPECIFIED } = AgentVisibility;

const agent = fc.record({
  principal: fc.constantFrom(...PRINCIPALS),
  organization: fc.constantFrom(...ORGANIZATIONS),
  visibility: fc.constantFrom(UNSPECIFIED, PUBLIC, ORGANIZATION, NAMED),
  visibleTo: fc.subarray([...IDS, "nobody", "p", "q"]),
});
const world = fc.record({
  agents: fc.array(agent, { minLength: 4, maxLength: 4 }),
  members: fc.uniqueArray(fc.tuple(fc.constantFrom("acme", "fine"), fc.constantFrom("p", "q", "r")), {
    selector: (pair) => pair.join("/"),
  }),
  viewer: fc.constantFrom("p", "q", "r", "stranger"),
});

it("a list contains exactly the agents that single reads return", async () => {
  await fc.assert(
    fc.asyncProperty(world, async ({ agents, members, viewer: principal }) => {
      const store = await openStore({
        memory: true,
        migrations,
        onError: (error) => {
          throw error;
        },
      });
      await store.write(async (tx) => {
        for (const [i, parts] of agents.entries()) {
          const id = IDS[i] ?? "";
          const visibleTo = parts.visibility === NAMED ? parts.visibleTo : [];
          await putRecord(
            tx,
            MEMORY,
            createStoredAgent(create(AgentSchema, { ...parts, visibleTo, id }), undefined, 1),
          );
          await putLease(tx, MEMORY, id, 1, 1_000);
        }
        for (const [organization, member] of members) {
          await addMember(tx, organization, { principal: member, admittedBy: member, createTime: 1 });
        }
      });
      const viewer = { principal };
      const { listed, read } = await store.read(async (tx) => {
        const filter = {
          status: AgentStatus.ACTIVE,
          health: AgentHealth.UNSPECIFIED,
          capabilityId: "",
          organization: "",
          principal: "",
          keys: [],
        };
        const page = { after: "", limit: 10, view: { now: 1, asOf: 1 }, viewer };
        const list = await listAgents(tx, filter, page);
        const foundIds = [];
        for (const id of IDS) if ((await findVisible(tx, id, viewer)) !== undefined) foundIds.push(id);
        return { listed: list.agents.map(({ record }) => record.id), read: foundIds };
      });
      expect(listed).toEqual(read);
      const isOwn = (id: string) => agents[IDS.indexOf(id)]?.principal === principal;
      for (const [i, { visibility, organization, visibleTo }] of agents.entries()) {
        const id = IDS[i] ?? "";
        const allowed =
          isOwn(id) ||
          visibility === PUBLIC ||
          visibility === UNSPECIFIED ||
          (visibility === ORGANIZATION && members.some(([o, m]) => o === organization && m === principal)) ||
          (visibility === NAMED && visibleTo.some((each) => each === principal || isOwn(each)));
        expect(read.includes(id)).toBe(allowed);
      }
      await store.close();
    }),
    { numRuns: 60 },
  );
});
