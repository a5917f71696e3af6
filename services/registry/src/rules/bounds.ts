import type { AgentManifest } from "@depute/contracts/cap/v1/manifest_pb";
import type { DelegationPolicy } from "@depute/contracts/delegateos/v0/principal_pb";
import type { Agent } from "@depute/contracts/depute/registry/v1/agent_pb";
import { toolWidenings } from "./tool-grants.ts";
import type { Widening } from "./widening.ts";

/** The members of a record that limit the agent's actions. */
export type Bounded = Pick<Agent, "manifest" | "delegation">;

/** The records with which a change is compared. */
export interface BoundsBefore {
  /**
   * The agent's last record, even if the agent was removed; for a new instance, its base's record; undefined for a new
   * agent. The manifest is absent if the agent's key has changed.
   */
  readonly ownBounds: Bounded | undefined;
  /** Manifests of other agents that bind the same key. */
  readonly others: readonly AgentManifest[];
}

/** Maximum number of characters of a value that an error quotes. */
const EXCERPT_CHARACTERS = 60;

/**
 * Returns each member by which a record permits an agent more than before. (CAP "Agent Definition") The manifest is
 * compared with the agent's previous manifest. A first manifest may permit anything, unless other manifests bind the
 * same key. The key could use the new manifest for actions that the other manifests deny. So the first manifest is
 * compared with the union of the other manifests. Depute's choice: a changed condition, predicate or overseer counts as
 * wider, because no program can compare them. An added predicate or overseer does not. A removed manifest counts as
 * wider. Absent and null overseers are equal.
 */
export function widenings(after: Bounded, { ownBounds, others }: BoundsBefore): Widening[] {
  return [
    ...manifestWidenings(after.manifest, ownBounds?.manifest, others),
    ...limitWidenings(after, ownBounds),
  ];
}

function manifestWidenings(
  after: AgentManifest | undefined,
  before: AgentManifest | undefined,
  others: readonly AgentManifest[],
): Widening[] {
  if (before !== undefined) {
    if (after === undefined) return [{ path: "agent.manifest", before: "present", after: "absent" }];
    return [...permissionWidenings(after, [before]), ...overseerWidenings(after, before)];
  }
  return after === undefined || others.length === 0 ? [] : permissionWidenings(after, others);
}

function permissionWidenings(after: AgentManifest, before: readonly AgentManifest[]): Widening[] {
  return [
    ...delegateWidenings(after, before),
    ...ruleWidenings(after, before),
    ...toolWidenings(
      after.mcpBindings,
      before.flatMap(({ mcpBindings }) => mcpBindings),
    ),
  ];
}

function delegateWidenings({ allowedAgents }: AgentManifest, before: readonly AgentManifest[]): Widening[] {
  const knownAgents = new Set(before.flatMap((manifest) => manifest.allowedAgents));
  return [...new Set(allowedAgents)]
    .filter((id) => !knownAgents.has(id))
    .map((id) => ({
      path: `agent.manifest.allowed_agents["${id}"]`,
      before: "not allowed",
      after: "allowed",
    }));
}

type Rule = AgentManifest["delegateRules"][string];

function ruleWidenings({ delegateRules }: AgentManifest, before: readonly AgentManifest[]): Widening[] {
  return Object.entries(delegateRules).flatMap(([id, rule]) => {
    const knownRules = before.flatMap((manifest) => {
      const ownRule = Object.hasOwn(manifest.delegateRules, id) ? manifest.delegateRules[id] : undefined;
      return ownRule === undefined ? [] : [ownRule];
    });
    const path = `agent.manifest.delegate_rules["${id}"]`;
    const [first] = knownRules;
    if (first === undefined) return [{ path, before: "no rule", after: excerpt(rule.whenToDelegate) }];
    const sameWords = knownRules.filter(({ whenToDelegate }) => whenToDelegate === rule.whenToDelegate);
    const [same] = sameWords;
    if (same === undefined) {
      const [was, is] = [first.whenToDelegate, rule.whenToDelegate].map(excerpt);
      return [{ path: `${path}.when_to_delegate`, before: was ?? "", after: is ?? "" }];
    }
    if (sameWords.some((one) => narrowsPredicate(rule, one))) return [];
    const [was, is] = [same, rule].map(({ predicate = "" }) => excerpt(predicate));
    return [{ path: `${path}.predicate`, before: was ?? "", after: is ?? "" }];
  });
}

/**
 * Whether a predicate does not widen its rule: the rule had no predicate before, or the predicate is unchanged. A
 * different predicate counts as wider, because programs cannot compare two predicates.
 */
function narrowsPredicate(after: Rule, before: Rule): boolean {
  const [is, was] = [after.predicate ?? "", before.predicate ?? ""];
  return was === "" || was === is;
}

function overseerWidenings(after: AgentManifest, before: AgentManifest): Widening[] {
  const [was, is] = [overseerOf(before), overseerOf(after)];
  if (was === "" || was === is) return [];
  return [{ path: "agent.manifest.overseer", before: was, after: is === "" ? "none" : is }];
}

/** Returns the manifest's overseer; empty for none. */
export function overseerOf(manifest: AgentManifest | undefined): string {
  return manifest?.overseer.case === "overseerId" ? manifest.overseer.value : "";
}

/**
 * Returns the limits of a delegation policy that a change widens. A removed policy counts as wider; a first policy does
 * not. The price is not a limit. (DelegateOS 14.2)
 */
function limitWidenings(after: Bounded, ownBounds: Bounded | undefined): Widening[] {
  const [was, is] = [ownBounds?.delegation?.delegationPolicy, after.delegation?.delegationPolicy];
  if (was === undefined) return [];
  const path = "agent.delegation.delegation_policy";
  if (is === undefined) return [{ path, before: "present", after: "absent" }];
  const widening = (name: keyof DelegationPolicy, isWider: boolean, member: string): Widening[] =>
    isWider ? [{ path: `${path}.${member}`, before: String(was[name]), after: String(is[name]) }] : [];
  const namespaces = is.allowedNamespaces.filter((name) => !was.allowedNamespaces.includes(name));
  return [
    ...widening("acceptsDelegation", is.acceptsDelegation && !was.acceptsDelegation, "accepts_delegation"),
    ...widening("maxChainDepth", is.maxChainDepth > was.maxChainDepth, "max_chain_depth"),
    ...widening("requiredTrustScore", is.requiredTrustScore < was.requiredTrustScore, "required_trust_score"),
    ...[...new Set(namespaces)].map((name) => ({
      path: `${path}.allowed_namespaces["${name}"]`,
      before: "not allowed",
      after: "allowed",
    })),
  ];
}

function excerpt(text: string): string {
  const points = Array.from(text);
  if (points.length === 0) return "none";
  return points.length <= EXCERPT_CHARACTERS ? text : `${points.slice(0, EXCERPT_CHARACTERS).join("")}…`;
}
