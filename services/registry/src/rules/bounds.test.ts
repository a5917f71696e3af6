import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { NullValue } from "@bufbuild/protobuf/wkt";
import { type AgentManifest, AgentManifestSchema } from "@depute/contracts/cap/v1/manifest_pb";
import { type Agent, AgentSchema } from "@depute/contracts/depute/registry/v1/agent_pb";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { widenings } from "./bounds.ts";
import { isBoundsChange } from "./bounds-change.ts";
import { checkDelegation, checkToolAccess } from "./policy.ts";

type Manifest = Exclude<MessageInitShape<typeof AgentManifestSchema>, AgentManifest>;

const agent = (manifest?: Manifest, more: Exclude<MessageInitShape<typeof AgentSchema>, Agent> = {}): Agent =>
  create(AgentSchema, { ...more, id: "a", ...(manifest && { manifest: other({ ...manifest, id: "a" }) }) });
const other = (manifest: Manifest) => create(AgentManifestSchema, manifest);
const paths = (before: Agent | undefined, after: Agent, others = [] as ReturnType<typeof other>[]) =>
  widenings(after, { ownBounds: before, others }).map(({ path }) => path);

const rule = (whenToDelegate: string, predicate?: string) => ({
  whenToDelegate,
  ...(predicate !== undefined && { predicate }),
});
const none = { case: "overseerNull", value: NullValue.NULL_VALUE } as const;
const overseer = (value: string) => ({ case: "overseerId", value }) as const;
const binding = (serverId: string, allowedTools: string[], scopes: string[] = []) => ({
  serverId,
  allowedTools,
  scopes,
});
const policy = (parts: object = {}) => ({
  delegation: {
    delegationPolicy: {
      acceptsDelegation: true,
      maxChainDepth: 3n,
      requiredTrustScore: 0.5,
      allowedNamespaces: ["web"],
      ...parts,
    },
  },
});
const qa = { allowedAgents: ["qa"], delegateRules: { qa: rule("when done") } };
const m = "agent.manifest";

describe("the widenings of a change", () => {
  it.each<[string, Agent | undefined, Agent, string[]]>([
    ["nothing, the same again", agent(qa), agent(qa), []],
    ["nothing, a first registration", undefined, agent(qa), []],
    ["nothing, a first manifest", agent(), agent(qa), []],
    ["nothing, an agent without a manifest", agent(), agent(), []],
    ["a removed manifest", agent(qa), agent(), [m]],
    ["nothing, another prompt", agent({ systemPrompt: "a" }), agent({ systemPrompt: "b" }), []],
    ["nothing, a delegate less", agent(qa), agent({}), []],
    ["nothing, a rule less", agent(qa), agent({ allowedAgents: ["qa"] }), []],
    [
      "a delegate and its rule",
      agent(qa),
      agent({ allowedAgents: ["qa", "x"], delegateRules: { qa: rule("when done"), x: rule("now") } }),
      [`${m}.allowed_agents["x"]`, `${m}.delegate_rules["x"]`],
    ],
    [
      "a first rule for a delegate",
      agent({ allowedAgents: ["qa"] }),
      agent(qa),
      [`${m}.delegate_rules["qa"]`],
    ],
    ["a duplicate delegate", agent(), agent({ allowedAgents: ["x", "x"] }), []],
    [
      "a changed condition",
      agent(qa),
      agent({ ...qa, delegateRules: { qa: rule("whenever") } }),
      [`${m}.delegate_rules["qa"].when_to_delegate`],
    ],
    [
      "nothing for a first predicate",
      agent(qa),
      agent({ ...qa, delegateRules: { qa: rule("when done", "false") } }),
      [],
    ],
    [
      "a removed predicate",
      agent({ ...qa, delegateRules: { qa: rule("when done", "false") } }),
      agent(qa),
      [`${m}.delegate_rules["qa"].predicate`],
    ],
    [
      "a changed predicate",
      agent({ ...qa, delegateRules: { qa: rule("when done", "false") } }),
      agent({ ...qa, delegateRules: { qa: rule("when done", "true") } }),
      [`${m}.delegate_rules["qa"].predicate`],
    ],
    [
      "a delegate with the name of a member of every object",
      agent({}),
      agent({ allowedAgents: ["constructor"], delegateRules: { constructor: rule("now") } }),
      [`${m}.allowed_agents["constructor"]`, `${m}.delegate_rules["constructor"]`],
    ],
    ["nothing for a first overseer", agent({ overseer: none }), agent({ overseer: overseer("q") }), []],
    ["nothing, null for no overseer", agent({}), agent({ overseer: none }), []],
    ["nothing, no overseer for null", agent({ overseer: none }), agent({}), []],
    [
      "null for an overseer",
      agent({ overseer: overseer("q") }),
      agent({ overseer: none }),
      [`${m}.overseer`],
    ],
    ["no overseer for one", agent({ overseer: overseer("q") }), agent({}), [`${m}.overseer`]],
    [
      "an empty overseer",
      agent({ overseer: overseer("q") }),
      agent({ overseer: overseer("") }),
      [`${m}.overseer`],
    ],
    [
      "a changed overseer",
      agent({ overseer: overseer("q") }),
      agent({ overseer: overseer("r") }),
      [`${m}.overseer`],
    ],
    [
      "a server",
      agent({ mcpBindings: [binding("s", ["t"])] }),
      agent({ mcpBindings: [binding("s", ["t"]), binding("z", ["t", "u"])] }),
      [`${m}.mcp_bindings["z"]`],
    ],
    [
      "a tool, and a scope",
      agent({ mcpBindings: [binding("s", ["t"], ["r"])] }),
      agent({ mcpBindings: [binding("s", ["t", "u"], ["r", "w"])] }),
      [`${m}.mcp_bindings["s"].allowed_tools["t"].scopes["w"]`, `${m}.mcp_bindings["s"].allowed_tools["u"]`],
    ],
    [
      "nothing for bindings of one server split in two",
      agent({ mcpBindings: [binding("s", ["t", "u"], ["r"])] }),
      agent({ mcpBindings: [binding("s", ["t"], ["r"]), binding("s", ["u"], ["r"])] }),
      [],
    ],
    [
      "a scope that only another tool had",
      agent({ mcpBindings: [binding("s", ["t"], ["r"]), binding("s", ["u"], ["w"])] }),
      agent({ mcpBindings: [binding("s", ["t", "u"], ["r", "w"])] }),
      [
        `${m}.mcp_bindings["s"].allowed_tools["t"].scopes["w"]`,
        `${m}.mcp_bindings["s"].allowed_tools["u"].scopes["r"]`,
      ],
    ],
    [
      "one field, while another is narrowed",
      agent({ ...qa, overseer: overseer("q"), mcpBindings: [binding("s", ["t"])] }),
      agent({ overseer: none, mcpBindings: [] }),
      [`${m}.overseer`],
    ],
    ["nothing, a first policy", agent(), agent(undefined, policy()), []],
    ["a removed policy", agent(undefined, policy()), agent(), ["agent.delegation.delegation_policy"]],
    [
      "nothing for narrower limits",
      agent(undefined, policy()),
      agent(
        undefined,
        policy({ acceptsDelegation: false, maxChainDepth: 2n, requiredTrustScore: 1, allowedNamespaces: [] }),
      ),
      [],
    ],
    [
      "each limit",
      agent(undefined, policy({ acceptsDelegation: false })),
      agent(
        undefined,
        policy({ maxChainDepth: 4n, requiredTrustScore: 0.4, allowedNamespaces: ["web", "db"] }),
      ),
      ["accepts_delegation", "max_chain_depth", "required_trust_score", 'allowed_namespaces["db"]'].map(
        (member) => `agent.delegation.delegation_policy.${member}`,
      ),
    ],
  ])("%s", (_name, before, after, expected) => {
    expect(paths(before, after)).toEqual(expected);
  });

  it("compares a first manifest with the union of the key's other manifests", () => {
    const others = [
      other({ ...qa, mcpBindings: [binding("s", ["t"])] }),
      other({ allowedAgents: ["x"], delegateRules: { x: rule("now", "true") } }),
    ];
    const both = { qa: rule("when done", "false"), x: rule("now", "true") };
    const within = { allowedAgents: ["qa", "x"], delegateRules: both, mcpBindings: [binding("s", ["t"])] };
    expect(paths(undefined, agent(within), others)).toEqual([]);
    expect(paths(undefined, agent(), others)).toEqual([]);
    const beyond = { ...within, allowedAgents: ["qa", "x", "y"], mcpBindings: [binding("s", ["t", "u"])] };
    expect(paths(undefined, agent(beyond), others)).toEqual([
      `${m}.allowed_agents["y"]`,
      `${m}.mcp_bindings["s"].allowed_tools["u"]`,
    ]);
  });

  it("contains the value before and after", () => {
    const words = "w".repeat(100);
    expect(
      widenings(agent({ ...qa, delegateRules: { qa: rule(words) } }), { ownBounds: agent(qa), others: [] }),
    ).toEqual([
      {
        path: `${m}.delegate_rules["qa"].when_to_delegate`,
        before: "when done",
        after: `${"w".repeat(60)}…`,
      },
    ]);
  });

  it("counts bindings beyond the comparison limit as wider", () => {
    const tools = Array.from({ length: 1000 }, (_, i) => `t${i}`);
    const huge = Array.from({ length: 100 }, () => binding("s", tools));
    expect(paths(agent({ mcpBindings: huge }), agent({ mcpBindings: huge }))).toEqual([`${m}.mcp_bindings`]);
  });

  const names = fc.constantFrom("x", "y", "z");
  const anyManifest = fc.record({
    allowedAgents: fc.subarray(["x", "y", "z"]),
    rules: fc.dictionary(
      names,
      fc.record({
        whenToDelegate: fc.constantFrom("a", "b"),
        predicate: fc.constantFrom("true", "false", ""),
      }),
    ),
    mcpBindings: fc.array(
      fc.record({ serverId: names, allowedTools: fc.subarray(["t", "u"]), scopes: fc.subarray(["r", "w"]) }),
      { maxLength: 4 },
    ),
  });

  it("reports every change that newly allows a delegation", () => {
    fc.assert(
      fc.property(anyManifest, anyManifest, (was, is) => {
        const [before, after] = [was, is].map(({ rules, ...parts }) =>
          agent({ ...parts, delegateRules: rules }),
        ) as [Agent, Agent];
        if (paths(before, after).length > 0) return;
        for (const toId of ["x", "y", "z"]) {
          const may = (from: Agent) =>
            checkDelegation({
              fromId: "a",
              toId,
              from,
              to: {},
              justification: "why",
              orchestratorMay: true,
              evaluate: (predicate) => ({ holds: predicate === "true" }),
            }).decision === 1;
          expect(may(after) && !may(before)).toBe(false);
        }
        for (const serverId of ["x", "y", "z"]) {
          for (const tool of ["t", "u"]) {
            for (const scope of ["", "r", "w"]) {
              const may = (from: Agent) => checkToolAccess(from, { serverId, tool, scope }) === 1;
              expect(may(after) && !may(before)).toBe(false);
            }
          }
        }
      }),
      { numRuns: 2000 },
    );
  });
});

describe("an operator's change of bounds", () => {
  it.each<[string, Agent, boolean]>([
    ["covers the manifest, the limits and the version name", agent({}, { ...policy(), version: "2" }), true],
    ["is none with another description", agent(qa, { description: "new" }), false],
    ["is none with another principal", agent(qa, { principal: "k" }), false],
  ])("%s", (_name, after, expected) => {
    expect(isBoundsChange(agent(qa, { version: "1" }), after)).toBe(expected);
  });
});
