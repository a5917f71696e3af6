import { create } from "@bufbuild/protobuf";
import { AgentManifestSchema } from "@depute/contracts/cap/v1/manifest_pb";
import { PolicyDecision } from "@depute/contracts/depute/registry/v1/policy_service_pb";
import { describe, expect, it } from "vitest";
import { checkDelegation, checkToolAccess, type DelegationQuestion } from "./policy.ts";

const D = PolicyDecision;

/** The manifest of the project manager in CAP's specification, plus one allowed agent without a rule. */
const manifest = create(AgentManifestSchema, {
  id: "pm-1",
  allowedAgents: ["analyst-1", "intern-1", "pm-1", "toString"],
  delegateRules: {
    "analyst-1": { whenToDelegate: "When a subtask requires deep data analysis." },
    "pm-1": { whenToDelegate: "Never." },
  },
  mcpBindings: [
    { serverId: "DocsServer", scopes: ["read:docs"], allowedTools: ["read_file"] },
    { serverId: "DataServer", scopes: ["read:data"], allowedTools: ["query_data"] },
    { serverId: "DataServer", scopes: ["write:data"], allowedTools: ["insert_data", "query_data"] },
  ],
});
const pm = { manifest };
const bare = {};

describe("checkDelegation", () => {
  const ask = (parts: Partial<DelegationQuestion>) =>
    checkDelegation({
      fromId: "pm-1",
      toId: "analyst-1",
      from: pm,
      to: bare,
      justification: "it does",
      orchestratorMay: true,
      evaluate: (predicate) => (predicate === "?" ? { failure: "why" } : { holds: predicate === "true" }),
      ...parts,
    });

  it.each<[string, Partial<DelegationQuestion>, PolicyDecision]>([
    ["to an allowed agent with a rule and a reason", {}, D.ALLOWED],
    ["from an instance", { fromId: "pm-1:7" }, D.ALLOWED],
    ["to an instance", { toId: "analyst-1:7" }, D.ALLOWED],
    ["without a reason", { justification: "" }, D.NO_JUSTIFICATION],
    ["with a blank reason", { justification: " \n\t" }, D.NO_JUSTIFICATION],
    ["to an allowed agent without a rule", { toId: "intern-1" }, D.NO_RULE],
    ["to an allowed agent named like a member of every object", { toId: "toString" }, D.NO_RULE],
    ["to an agent that is not allowed", { toId: "qa-1" }, D.NOT_ALLOWED],
    ["to one whose id only begins like an allowed one's", { toId: "analyst-12" }, D.NOT_ALLOWED],
    ["to itself", { toId: "pm-1" }, D.NOT_ALLOWED],
    ["from an agent without a manifest", { from: bare }, D.NO_MANIFEST],
    ["from an unknown agent", { from: undefined }, D.UNKNOWN_AGENT],
    ["to an unknown agent", { to: undefined }, D.UNKNOWN_AGENT],
    ["to the user", { toId: "user" }, D.ROLE],
    ["to the orchestrator", { toId: "orchestrator" }, D.ROLE],
    ["from the user", { fromId: "user", from: undefined }, D.ROLE],
    ["from the orchestrator", { fromId: "orchestrator", from: undefined, justification: "" }, D.ALLOWED],
    ["from the orchestrator to an unknown agent", { fromId: "orchestrator", to: undefined }, D.UNKNOWN_AGENT],
    [
      "from an orchestrator without the permission",
      { fromId: "orchestrator", orchestratorMay: false },
      D.ROLE,
    ],
  ])("%s", (_, parts, decision) => {
    expect(ask(parts).decision).toBe(decision);
  });

  it("contains the condition of the applied rule", () => {
    const whenToDelegate = "When a subtask requires deep data analysis.";
    expect(ask({}).whenToDelegate).toBe(whenToDelegate);
    expect(ask({ justification: "" }).whenToDelegate).toBe(whenToDelegate);
    expect(ask({ toId: "qa-1" }).whenToDelegate).toBe("");
  });
});

describe("a rule with a predicate", () => {
  const ask = (predicate: string, justification = "it does") =>
    checkDelegation({
      fromId: "pm-1",
      toId: "analyst-1",
      from: {
        manifest: create(AgentManifestSchema, {
          id: "pm-1",
          allowedAgents: ["analyst-1"],
          delegateRules: { "analyst-1": { whenToDelegate: "Now.", predicate } },
        }),
      },
      to: bare,
      justification,
      orchestratorMay: true,
      evaluate: (source) => (source === "?" ? { failure: "why" } : { holds: source === "true" }),
    });

  it.each<[string, string, string, PolicyDecision]>([
    ["that is true", "true", "it does", D.ALLOWED],
    ["that is false", "false", "it does", D.PREDICATE_NOT_MET],
    ["that cannot be decided", "?", "it does", D.PREDICATE_FAILED],
    ["that is true, without a reason", "true", " ", D.NO_JUSTIFICATION],
  ])("%s", (_, predicate, justification, decision) => {
    expect(ask(predicate, justification)).toEqual({
      decision,
      whenToDelegate: "Now.",
      predicate,
      predicateFailure: predicate === "?" ? "why" : "",
    });
  });
});

describe("checkToolAccess", () => {
  it.each<[string, [server: string, tool: string, scope: string], PolicyDecision]>([
    ["a tool of a bound server", ["DocsServer", "read_file", ""], D.ALLOWED],
    ["with its scope", ["DocsServer", "read_file", "read:docs"], D.ALLOWED],
    ["with another scope", ["DocsServer", "read_file", "write:docs"], D.SCOPE_NOT_GRANTED],
    ["another tool", ["DocsServer", "delete_file", ""], D.TOOL_NOT_ALLOWED],
    ["a pattern", ["DocsServer", "*", ""], D.TOOL_NOT_ALLOWED],
    ["another server's tool", ["DocsServer", "query_data", ""], D.TOOL_NOT_ALLOWED],
    ["a server in another case", ["docsserver", "read_file", ""], D.SERVER_NOT_BOUND],
    ["a scope of a second binding that allows it", ["DataServer", "query_data", "write:data"], D.ALLOWED],
    ["a scope of a binding that does not", ["DataServer", "insert_data", "read:data"], D.SCOPE_NOT_GRANTED],
  ])("%s", (_, [serverId, tool, scope], decision) => {
    expect(checkToolAccess(pm, { serverId, tool, scope })).toBe(decision);
  });

  it.each<[string, Parameters<typeof checkToolAccess>[0], PolicyDecision]>([
    ["of an unknown agent", undefined, D.UNKNOWN_AGENT],
    ["of an agent without a manifest", bare, D.NO_MANIFEST],
  ])("%s", (_, agent, decision) => {
    expect(checkToolAccess(agent, { serverId: "s", tool: "t", scope: "" })).toBe(decision);
  });
});
