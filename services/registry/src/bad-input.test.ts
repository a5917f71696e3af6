import { durationFromMs } from "@bufbuild/protobuf/wkt";
import { AgentService } from "@depute/contracts/depute/registry/v1/agent_service_pb";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { ALICE, type Platform, startPlatform } from "./testing/platform.ts";
import { refusal } from "./testing/refusal.ts";

let platform: Platform;
beforeAll(async () => {
  platform = await startPlatform();
});
afterAll(() => platform.stop());

const manifest = { id: "a", systemPrompt: "", allowedAgents: ["b"], delegateRules: {} };
const rule = { whenToDelegate: "Always." };

describe("RegisterAgent refuses", () => {
  it.each<[string, Record<string, unknown>, string[]]>([
    ["an empty id", { id: "" }, ["agent.id"]],
    ["an id with a slash", { id: "a/b" }, ["agent.id"]],
    ["an id that begins with a dot", { id: ".a" }, ["agent.id"]],
    ["an id that is too long", { id: "a".repeat(129) }, ["agent.id"]],
    ["an id with a line break behind it", { id: "a\n" }, ["agent.id"]],
    ["a role of CAP", { id: "orchestrator" }, ["agent.id"]],
    ["the other role", { id: "user" }, ["agent.id"]],
    ["a principal that is not a key", { id: "a", principal: "abc" }, ["agent.principal"]],
    ["a principal with spare bits", { id: "a", principal: `${ALICE.slice(0, 42)}B` }, ["agent.principal"]],
    ["a lease that is too short", { id: "a", leaseDuration: durationFromMs(999) }, ["agent.lease_duration"]],
    [
      "a lease beyond the limit",
      { id: "a", leaseDuration: durationFromMs(86_400_001) },
      ["agent.lease_duration"],
    ],
    ["a negative lease", { id: "a", leaseDuration: durationFromMs(-1) }, ["agent.lease_duration"]],
    ["a manifest of another agent", { id: "a", manifest: { ...manifest, id: "b" } }, ["agent"]],
    [
      "an agent as its own overseer",
      { id: "a", manifest: { ...manifest, overseer: { case: "overseerId", value: "a" } } },
      ["agent"],
    ],
    [
      "a rule for an agent outside allowed_agents",
      { id: "a", manifest: { ...manifest, delegateRules: { c: rule } } },
      ["agent.manifest"],
    ],
    [
      "a predicate that does not parse",
      {
        id: "a",
        manifest: { ...manifest, delegateRules: { b: { ...rule, predicate: "task.priority <" } } },
      },
      ['agent.manifest.delegate_rules["b"].predicate'],
    ],
    [
      "a predicate beyond the length limit",
      { id: "a", manifest: { ...manifest, delegateRules: { b: { ...rule, predicate: "x".repeat(1001) } } } },
      ['agent.manifest.delegate_rules["b"].predicate'],
    ],
    [
      "predicates with unbounded cost",
      {
        id: "a",
        manifest: {
          ...manifest,
          allowedAgents: ["b", "c"],
          delegateRules: {
            b: { ...rule, predicate: "justification.matches('(a+)+$')" },
            c: { ...rule, predicate: "to.tags.all(a, to.tags.all(b, a == b))" },
          },
        },
      },
      ['agent.manifest.delegate_rules["b"].predicate', 'agent.manifest.delegate_rules["c"].predicate'],
    ],
    [
      "a rule's key outside the pattern",
      { id: "a", manifest: { ...manifest, allowedAgents: ["b"], delegateRules: { "b c": rule } } },
      ['agent.manifest.delegate_rules["b c"]', "agent.manifest"],
    ],
    [
      "an allowed agent outside the pattern",
      { id: "a", manifest: { ...manifest, allowedAgents: ["a.b"] } },
      ["agent.manifest.allowed_agents[0]"],
    ],
    [
      "a manifest of an agent with an id outside CAP's pattern",
      { id: "a.b", manifest: { ...manifest, id: "a.b" } },
      ["agent.manifest.id"],
    ],
    [
      "several faults at once",
      { id: "", leaseDuration: durationFromMs(1), displayName: "x".repeat(201), version: "x".repeat(65) },
      ["agent.id", "agent.display_name", "agent.version", "agent.lease_duration"],
    ],
  ])("%s", async (_, agent, fields) => {
    const refused = await refusal(platform.agents.registerAgent({ requestId: "r", agent: agent as never }));
    expect(refused.reason).toBe("INVALID_REQUEST");
    expect([...refused.fields].sort()).toEqual([...fields].sort());
    expect((await platform.agents.listAgents({})).agents).toEqual([]);
  });

  it("a request without an agent or a request id", async () => {
    const refused = await refusal(platform.agents.registerAgent({}));
    expect([...refused.fields].sort()).toEqual(["agent", "request_id"]);
  });
});

async function drain(stream: AsyncIterable<unknown>): Promise<void> {
  for await (const _ of stream);
}

describe("other calls refuse", () => {
  const long = "x".repeat(600);

  it.each<[string, () => Promise<unknown>, string[]]>([
    ["GetAgent without an id", () => platform.agents.getAgent({}), ["agent_id"]],
    ["HeartbeatAgent without an id", () => platform.agents.heartbeatAgent({}), ["agent_id"]],
    ["DeregisterAgent without an id", () => platform.agents.deregisterAgent({}), ["agent_id"]],
    ["a page that is too large", () => platform.agents.listAgents({ pageSize: 1001 }), ["page_size"]],
    ["a page of negative size", () => platform.agents.listAgents({ pageSize: -1 }), ["page_size"]],
    ["an unknown status", () => platform.agents.listAgents({ status: 9 as never }), ["status"]],
    ["a page token that is too long", () => platform.agents.listAgents({ pageToken: long }), ["page_token"]],
    ["an unknown level", () => platform.discovery.discoverCapabilities({ level: 3 }), ["level"]],
    [
      "a threshold over 1",
      () => platform.discovery.discoverCapabilities({ filter: { threshold: 1.5 } }),
      ["filter.threshold"],
    ],
    [
      "a top_k of zero",
      () => platform.discovery.discoverCapabilities({ filter: { topK: 0 } }),
      ["filter.top_k"],
    ],
    [
      "a query beyond the length limit",
      () => platform.discovery.discoverCapabilities({ filter: { query: long } }),
      ["filter.query"],
    ],
    [
      "a hash beyond the length limit",
      () => platform.discovery.resolveCapability({ capabilityId: "a", hash: long }),
      ["hash"],
    ],
    [
      "more tags than the limit",
      () => platform.discovery.discoverCapabilities({ tags: Array(9).fill("x") }),
      ["tags"],
    ],
    ["trust over 100", () => platform.discovery.discoverCapabilities({ minTrust: 101 }), ["min_trust"]],
    [
      "a least trust that is not a number",
      () => platform.discovery.discoverCapabilities({ minTrust: NaN }),
      ["min_trust"],
    ],
    [
      "a watch from a negative sequence",
      () => drain(platform.agents.watchAgents({ afterSequence: -1n })),
      ["after_sequence"],
    ],
    [
      "a key replacement without keys or statements",
      () => platform.agents.replacePrincipal({ agentId: "a" }),
      ["replaced", "principal", "replaced_statement", "principal_statement"],
    ],
    ["a version without a name", () => platform.agents.getAgentVersion({ agentId: "a" }), ["name"]],
    [
      "a malformed digest",
      () =>
        platform.agents.getAgentVersion({
          agentId: "a",
          name: { case: "digest", value: Uint8Array.of(1, 2) },
        }),
      ["digest"],
    ],
    [
      "evidence without a kind",
      () => platform.trust.recordEvidence({ evidenceId: "e", evidence: { agentId: "a" } }),
      ["evidence.kind"],
    ],
    ["an agent without a URI", () => platform.agents.getAgentByUri({ uri: "a" }), ["uri"]],
    [
      "an authority in upper case",
      () => platform.authorities.listAuthorityGrants({ authority: "Example.com" }),
      ["authority"],
    ],
    ["a delegation without a delegator", () => platform.policy.checkDelegation({ toAgentId: "a" }), [""]],
    [
      "a member without an organization",
      () => platform.organizations.admitMember({ principal: "p" }),
      ["organization"],
    ],
    ["an empty offer", () => platform.offers.publishOffer({ requestId: "r" }), ["offer"]],
    [
      "a publication without an agent",
      () => platform.agents.publishCapabilities({ requestId: "r" }),
      ["agent_id"],
    ],
  ])("%s", async (_, call, fields) => {
    expect(await refusal(call())).toMatchObject({ reason: "INVALID_REQUEST", fields });
  });
});

describe("the service", () => {
  it("still answers after all refused requests", async () => {
    expect(Object.keys(AgentService.method)).toHaveLength(13);
    expect((await platform.agents.listAgents({})).agents).toEqual([]);
  });
});
