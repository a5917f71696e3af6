import { AgentStatus, AgentVisibility } from "@depute/contracts/depute/registry/v1/agent_pb";
import { PolicyDecision } from "@depute/contracts/depute/registry/v1/policy_service_pb";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { ALICE, as, BOB, CAROL, type Platform, startPlatform } from "../testing/platform.ts";
import { refusal } from "../testing/refusal.ts";

let platform: Platform;
let requests = 0;

const register = (id: string, principal: string, parts: Record<string, unknown> = {}) =>
  platform.agents.registerAgent(
    { requestId: `request-${++requests}`, agent: { id, principal, ...parts } },
    as(principal),
  );

beforeEach(async () => {
  platform = await startPlatform();
  await register("seller", ALICE, { organization: "acme" });
  await register("buyer", BOB);
});
afterEach(() => platform.stop());

describe("PolicyService", () => {
  it("evaluates an organization only if the principal is a member", async () => {
    await register("impostor", CAROL, { organization: "acme" });
    const rule = { whenToDelegate: "to colleagues", predicate: "to.organization != 'evil'" };
    const delegateRules = { seller: rule, impostor: rule };
    const allowedAgents = ["seller", "impostor"];
    await register("buyer", BOB, { manifest: { id: "buyer", allowedAgents, delegateRules } });
    const decide = async (toAgentId: string) =>
      (await platform.policy.checkDelegation({ fromAgentId: "buyer", toAgentId, justification: "we agreed" }))
        .allowed;
    expect([await decide("seller"), await decide("impostor")]).toEqual([true, false]);
  });

  const manifest = {
    id: "buyer",
    systemPrompt: "",
    allowedAgents: ["seller"],
    delegateRules: { seller: { whenToDelegate: "When text is to be judged." } },
    mcpBindings: [{ serverId: "Docs", scopes: ["read"], allowedTools: ["get"] }],
  };
  const check = (parts: Record<string, unknown> = {}, caller = BOB) =>
    platform.policy.checkDelegation(
      { fromAgentId: "buyer", toAgentId: "seller", justification: "text", ...parts },
      as(caller),
    );

  beforeEach(async () => {
    await register("buyer", BOB, { manifest });
    await register("buyer:1", BOB);
  });

  it("decides by the registered manifests, and names the overseer", async () => {
    const overseen = { id: "seller", systemPrompt: "", overseer: { case: "overseerId", value: "qa" } };
    await register("seller", ALICE, { organization: "acme", manifest: overseen });
    const allowed = {
      allowed: true,
      decision: 1,
      whenToDelegate: "When text is to be judged.",
      overseerId: "qa",
    };
    expect(await check()).toMatchObject(allowed);
    expect(await check({ fromAgentId: "buyer:1" })).toMatchObject(allowed);
    expect(await check({}, ALICE)).toMatchObject(allowed);
    expect(await check({ justification: " " })).toMatchObject({ allowed: false, overseerId: "" });
    expect(await check({ fromAgentId: "user" }, ALICE)).toMatchObject({ allowed: false, decision: 3 });
  });

  it("reveals neither others' manifests nor hidden agents", async () => {
    expect(await refusal(check({}, CAROL))).toMatchObject({ reason: "CALLER_NOT_ALLOWED" });
    await register("seller", ALICE, { organization: "acme", visibility: AgentVisibility.NAMED });
    const hidden = await check();
    expect(hidden).toMatchObject({ allowed: false, decision: 2 });
    expect(await check({ toAgentId: "nobody" })).toEqual(hidden);
    const platformsOwn = { fromAgentId: "buyer", toAgentId: "seller", justification: "text" };
    expect(await platform.policy.checkDelegation(platformsOwn)).toEqual(hidden);
  });

  it("lets the configured orchestrator principals delegate, if the setting allows it", async () => {
    const call = { fromAgentId: "orchestrator", toAgentId: "seller" };
    expect(await platform.policy.checkDelegation(call)).toMatchObject({ allowed: true });
    expect(await refusal(check(call, CAROL))).toMatchObject({ reason: "CALLER_NOT_ALLOWED" });
    await platform.stop();
    platform = await startPlatform([
      "--orchestrator-principals",
      CAROL,
      "--orchestrator-may-delegate",
      "false",
    ]);
    await register("seller", ALICE, { organization: "acme" });
    expect(await check(call, CAROL)).toMatchObject({ allowed: false, decision: 3 });
  });

  it("decides on tools for the agent's principal", async () => {
    const ask = (parts: Record<string, unknown>, caller = BOB) =>
      platform.policy.checkToolAccess(
        { agentId: "buyer", serverId: "Docs", tool: "get", ...parts },
        as(caller),
      );
    expect(await ask({})).toMatchObject({ allowed: true, decision: 1 });
    expect(await ask({ agentId: "buyer:1", scope: "read" })).toMatchObject({ allowed: true });
    expect(await ask({ scope: "write" })).toMatchObject({ allowed: false, decision: 10 });
    expect(await ask({ agentId: "nobody" })).toMatchObject({ allowed: false, decision: 2 });
    expect(await refusal(ask({}, ALICE))).toMatchObject({ reason: "CALLER_NOT_ALLOWED" });
  });

  describe("for a key", () => {
    const may = async (principal: string, caller = principal) => {
      const question = { fromPrincipal: principal, toAgentId: "seller", justification: "text" };
      const { allowed, decision, agentId } = await platform.policy.checkDelegation(question, as(caller));
      return [allowed, decision, agentId];
    };
    const mayUse = async (principal: string, tool: string) => {
      const question = { principal, serverId: "Docs", tool };
      return (await platform.policy.checkToolAccess(question, as(principal))).allowed;
    };

    it("allows a delegation that one of several manifests allows, and names its agent", async () => {
      await register("aide", BOB, { manifest: { id: "aide", mcpBindings: manifest.mcpBindings } });
      expect(await may(BOB)).toEqual([true, PolicyDecision.ALLOWED, "buyer"]);
      expect([await mayUse(BOB, "get"), await mayUse(BOB, "put")]).toEqual([true, false]);
      await register("buyer", BOB, { manifest: { ...manifest, allowedAgents: [], delegateRules: {} } });
      expect(await may(BOB)).toEqual([false, PolicyDecision.NOT_ALLOWED, "aide"]);
    });

    it("allows everything to a key without a manifest", async () => {
      expect(await may(ALICE)).toEqual([true, PolicyDecision.NOT_BOUND, ""]);
      expect(await mayUse(ALICE, "put")).toBe(true);
    });

    it("applies the manifest of a deprecated agent, and refuses under a removed one's", async () => {
      await platform.agents.setAgentStatus({ agentId: "buyer", status: AgentStatus.DEPRECATED }, as(BOB));
      expect(await may(BOB)).toEqual([true, PolicyDecision.ALLOWED, "buyer"]);
      await platform.agents.deregisterAgent({ agentId: "buyer" }, as(BOB));
      expect(await may(BOB)).toEqual([false, PolicyDecision.UNKNOWN_AGENT, "buyer"]);
      expect(await mayUse(BOB, "get")).toBe(false);
    });

    it("answers only the key's holder, and accepts either an agent or a key", async () => {
      expect(await refusal(may(BOB, CAROL))).toMatchObject({ reason: "CALLER_NOT_ALLOWED" });
      for (const question of [
        { fromAgentId: "", toAgentId: "seller" },
        { fromAgentId: "a", fromPrincipal: BOB, toAgentId: "b" },
      ]) {
        expect(await refusal(platform.policy.checkDelegation(question, as(BOB)))).toMatchObject({
          reason: "INVALID_REQUEST",
        });
      }
    });
  });

  describe("with a predicate in the rule", () => {
    const predicate = "task.priority < 5 && to.organization == 'acme' && to.trust < 50.0";
    const rule = { whenToDelegate: "Now.", predicate };
    const task = { capabilityId: "judge", priority: 4, depth: 0 };

    beforeEach(() => register("buyer", BOB, { manifest: { ...manifest, delegateRules: { seller: rule } } }));

    it.each<[string, Record<string, unknown>, PolicyDecision, string]>([
      ["allows a delegation for which it is true", { task }, PolicyDecision.ALLOWED, ""],
      [
        "denies a delegation for which it is false",
        { task: { ...task, priority: 5 } },
        PolicyDecision.PREDICATE_NOT_MET,
        "",
      ],
      [
        "denies a delegation without a needed fact",
        {},
        PolicyDecision.PREDICATE_FAILED,
        "field not found: priority",
      ],
      ["requires a justification first", { task, justification: "" }, PolicyDecision.NO_JUSTIFICATION, ""],
    ])("%s", async (_, parts, decision, predicateFailure) => {
      const allowed = decision === PolicyDecision.ALLOWED;
      const answer = { allowed, decision, predicate, predicateFailure, whenToDelegate: "Now." };
      expect(await check(parts)).toMatchObject(answer);
      expect(await check({ ...parts, fromAgentId: "buyer:1" })).toMatchObject(answer);
    });

    it("is unchanged after a refused update with an invalid one", async () => {
      const unfit = { ...rule, predicate: "task.priority.all(x, true)" };
      expect(
        await refusal(
          register("buyer", BOB, { manifest: { ...manifest, delegateRules: { seller: unfit } } }),
        ),
      ).toMatchObject({
        reason: "INVALID_REQUEST",
        fields: ['agent.manifest.delegate_rules["seller"].predicate'],
      });
      expect(await check({ task })).toMatchObject({ allowed: true, predicate });
    });
  });
});
