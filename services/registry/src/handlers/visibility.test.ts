import { AgentVisibility } from "@depute/contracts/depute/registry/v1/agent_pb";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { capability } from "../testing/capability.ts";
import { ALICE, as, BOB, CAROL, type Platform, startPlatform } from "../testing/platform.ts";
import { refusal } from "../testing/refusal.ts";

let platform: Platform;
let requests = 0;
const newRequest = () => `request-${++requests}`;

async function register(id: string, principal: string, parts: Record<string, unknown> = {}) {
  const agent = { id, principal, ...parts };
  await platform.agents.registerAgent({ requestId: newRequest(), agent }, as(principal));
  await platform.agents.publishCapabilities(
    { requestId: newRequest(), agentId: id, capabilities: [capability("sum", { desc: "adds numbers" })] },
    as(principal),
  );
}

const ORGANIZATION = AgentVisibility.ORGANIZATION;
const NAMED = AgentVisibility.NAMED;

beforeAll(async () => {
  platform = await startPlatform();
  await register("open", ALICE);
  await register("inner", ALICE, { organization: "acme", visibility: ORGANIZATION });
  await register("bob", BOB, { organization: "acme" });
  await register("carol", CAROL);
  await register("named", ALICE, { visibility: NAMED, visibleTo: ["carol"] });
  await register("keyed", ALICE, { visibility: NAMED, visibleTo: [BOB, "nobody"] });
  await register("secret", ALICE, { visibility: NAMED });
});
afterAll(() => platform.stop());

/** For each caller, the agents of ALICE that the caller may see. */
const SIGHT: [caller: string, principal: string, sees: string[]][] = [
  ["their owner", ALICE, ["inner", "keyed", "named", "open", "secret"]],
  ["one that only claims to be of the organization", BOB, ["keyed", "open"]],
  ["the owner of a named agent", CAROL, ["named", "open"]],
];
const ALL = ["inner", "keyed", "named", "open", "secret"];

describe.each(SIGHT)("%s", (_, principal, visible) => {
  const ownIds = (ids: (string | undefined)[]) =>
    [...new Set(ids)].filter((id) => ALL.includes(id ?? "")).sort();

  it("sees the same agents in every call", async () => {
    const caller = as(principal);
    const listed = await platform.agents.listAgents({}, caller);
    expect(ownIds(listed.agents.map(({ id }) => id))).toEqual(visible);
    const byCapability = await platform.agents.listAgents({ capabilityId: "sum" }, caller);
    expect(ownIds(byCapability.agents.map(({ id }) => id))).toEqual(visible);
    for (const request of [{}, { filter: { query: "numbers" } }, { filter: { category: "nlp" } }]) {
      const discovered = await platform.discovery.discoverCapabilities(request, caller);
      expect(ownIds(discovered.capabilities.map(({ agentId }) => agentId))).toEqual(visible);
      const asNamed = await platform.discovery.discoverCapabilities({ ...request, viewer: principal });
      expect(ownIds(asNamed.capabilities.map(({ agentId }) => agentId))).toEqual(visible);
    }
  });

  it.each(ALL)("gets %s, or the answer for an unknown agent", async (id) => {
    const caller = as(principal);
    const calls = (agent: string): [string, () => Promise<unknown>][] => [
      ["get", () => platform.agents.getAgent({ agentId: agent }, caller)],
      ["versions", () => platform.agents.listAgentVersions({ agentId: agent }, caller)],
      [
        "version",
        () =>
          platform.agents.getAgentVersion({ agentId: agent, name: { case: "revision", value: 1n } }, caller),
      ],
      ["discover", () => platform.discovery.discoverCapabilities({ agentId: agent }, caller)],
      ["resolve", () => platform.discovery.resolveCapability({ capabilityId: `${agent}/sum` }, caller)],
      [
        "for a viewer",
        () => platform.discovery.resolveCapability({ capabilityId: `${agent}/sum`, viewer: principal }),
      ],
      ["get for a viewer", () => platform.agents.getAgent({ agentId: agent, viewer: principal })],
    ];
    const unknown = new Map(
      await Promise.all(calls("nobody").map(async ([name, call]) => [name, await refusal(call())] as const)),
    );
    for (const [name, call] of calls(id)) {
      if (visible.includes(id)) {
        await call();
        continue;
      }
      const refused = await refusal(call());
      expect({ ...refused, metadata: {} }).toEqual({ ...unknown.get(name), metadata: {} });
      expect(refused.reason).toBe("AGENT_NOT_FOUND");
    }
    if (!visible.includes(id)) {
      for (const call of ["heartbeatAgent", "deregisterAgent"] as const) {
        expect(await refusal(platform.agents[call]({ agentId: id }, caller))).toMatchObject({
          reason: "AGENT_NOT_FOUND",
        });
      }
    }
  });
});

describe("the platform", () => {
  it("sees everything", async () => {
    const { agents } = await platform.agents.listAgents({});
    expect(agents.map(({ id }) => id)).toEqual([...ALL, "bob", "carol"].sort());
    expect((await platform.agents.getAgent({ agentId: "secret", viewer: "local" })).agent?.id).toBe("secret");
  });

  it("alone may name another viewer", async () => {
    const call = platform.agents.getAgent({ agentId: "open", viewer: ALICE }, as(BOB));
    expect(await refusal(call)).toMatchObject({ reason: "CALLER_NOT_ALLOWED", fields: ["viewer"] });
    expect((await platform.agents.getAgent({ agentId: "open", viewer: BOB }, as(BOB))).agent?.id).toBe(
      "open",
    );
  });
});

describe("OrganizationService", () => {
  it("lets members admit and remove members, and visibility follows", async () => {
    const { organizations } = platform;
    const inner = () => platform.agents.getAgent({ agentId: "inner" }, as(CAROL));
    for (const call of [
      () => organizations.admitMember({ organization: "acme", principal: BOB }, as(BOB)),
      () => organizations.listMembers({ organization: "acme" }, as(BOB)),
      () => organizations.removeMember({ organization: "acme", principal: ALICE }, as(BOB)),
      () => organizations.listMembers({ organization: "nobody" }, as(BOB)),
    ]) {
      expect(await refusal(call())).toMatchObject({ reason: "CALLER_NOT_ALLOWED" });
    }
    await organizations.admitMember({ organization: "acme", principal: CAROL }, as(ALICE));
    await organizations.admitMember({ organization: "acme", principal: CAROL }, as(ALICE));
    expect((await inner()).agent?.id).toBe("inner");
    const { members } = await organizations.listMembers({ organization: "acme" }, as(CAROL));
    expect(members.map(({ principal, admittedBy }) => [principal, admittedBy])).toEqual([
      [ALICE, ALICE],
      [CAROL, ALICE],
    ]);
    await organizations.removeMember({ organization: "acme", principal: CAROL }, as(ALICE));
    expect(await refusal(inner())).toMatchObject({ reason: "AGENT_NOT_FOUND" });
    const last = organizations.removeMember({ organization: "acme", principal: ALICE }, as(ALICE));
    expect(await refusal(last)).toMatchObject({ reason: "INVALID_REQUEST", fields: ["principal"] });
  });

  it("refuses strangers that register agents for members only", async () => {
    const agent = { id: "spy", principal: BOB, organization: "acme", visibility: ORGANIZATION };
    const call = platform.agents.registerAgent({ requestId: newRequest(), agent }, as(BOB));
    expect(await refusal(call)).toMatchObject({
      reason: "CALLER_NOT_ALLOWED",
      fields: ["agent.organization"],
    });
  });
});

describe("a filter", () => {
  beforeAll(async () => {
    await register("f1", ALICE, { tags: ["Fast", "cheap"], protocols: ["asp/0.1"], organization: "fine" });
    await register("f2", BOB, { tags: ["fast"], protocols: ["nekte/0.2", "ASP/0.1"] });
  });

  it.each<[string, Record<string, unknown>, string[]]>([
    ["a tag, in either case", { tags: ["FAST"] }, ["f1", "f2"]],
    ["two tags", { tags: ["fast", "cheap"] }, ["f1"]],
    ["a protocol, in either case", { protocol: "asp/0.1" }, ["f1", "f2"]],
    ["an organization, as it is written", { organization: "fine" }, ["f1"]],
    ["another case of one", { organization: "Fine" }, []],
    ["all together", { tags: ["fast"], protocol: "nekte/0.2", filter: { category: "nlp" } }, ["f2"]],
    ["free text and a tag", { tags: ["cheap"], filter: { query: "numbers" } }, ["f1"]],
    [
      "free text, a tag and another category",
      { tags: ["cheap"], filter: { query: "numbers", category: "x" } },
      [],
    ],
    ["an agent with the tag", { agentId: "f2", tags: ["fast"] }, ["f2"]],
    ["an agent without the tag", { agentId: "f2", tags: ["cheap"] }, []],
    ["an id", { tags: ["fast"], filter: { id: "sum" } }, ["f1", "f2"]],
  ])("by %s", async (_, request, expected) => {
    const lines: string[] = [];
    let pageToken = "";
    do {
      const page = await platform.discovery.discoverCapabilities({ ...request, pageSize: 1, pageToken });
      lines.push(...page.capabilities.map(({ agentId }) => agentId));
      pageToken = page.nextPageToken;
    } while (pageToken !== "");
    expect(lines.sort()).toEqual(expected);
  });
});
