import type { AgentManifest } from "@depute/contracts/cap/v1/manifest_pb";
import type { DelegationPolicy } from "@depute/contracts/delegateos/v0/principal_pb";
import type { Agent } from "@depute/contracts/depute/registry/v1/agent_pb";
import { toolWidenings } from "./tool-grants.ts";
import type { Widening } from "./widening.ts";

/** The members of a record that bound an agent. */
export type Bounded = Pick<Agent, "manifest" | "delegation">;

/** What a change is compared with. */
export interface BoundsBefore {
  /** The last record of the agent, also a removed one's; undefined for a new id. */
  readonly own: Bounded | undefined;
  /** Manifests of other agents that bind the same key. */
  readonly others: readonly AgentManifest[];
}

/** Characters of a text that a widening repeats. */
const SHOWN = 60;

/**
 * Names each place where a record gives an agent more than it had. (CAP "Agent Definition")
 *
 * An agent that has a manifest is compared with that one. The first manifest of an agent is free, unless other manifests
 * bind its key: the key could use the new one for what these deny. Then it is compared with what they allow together.
 *
 * Depute's choice: a condition in words, a predicate and an overseer that change count as wider, because no program can
 * tell. Absent and null overseers are the same.
 */
export function widenings(after: Bounded, { own, others }: BoundsBefore): Widening[] {
  return [...manifestWidenings(after.manifest, own?.manifest, others), ...limitWidenings(after, own)];
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
  const known = new Set(before.flatMap((manifest) => manifest.allowedAgents));
  return [...new Set(allowedAgents)]
    .filter((id) => !known.has(id))
    .map((id) => ({
      path: `agent.manifest.allowed_agents["${id}"]`,
      before: "not allowed",
      after: "allowed",
    }));
}

type Rule = AgentManifest["delegateRules"][string];

function ruleWidenings({ delegateRules }: AgentManifest, before: readonly AgentManifest[]): Widening[] {
  return Object.entries(delegateRules).flatMap(([id, rule]) => {
    const known = before.flatMap((manifest) => {
      const own = Object.hasOwn(manifest.delegateRules, id) ? manifest.delegateRules[id] : undefined;
      return own === undefined ? [] : [own];
    });
    const path = `agent.manifest.delegate_rules["${id}"]`;
    const [first] = known;
    if (first === undefined) return [{ path, before: "no rule", after: shown(rule.whenToDelegate) }];
    const sameWords = known.filter(({ whenToDelegate }) => whenToDelegate === rule.whenToDelegate);
    const [same] = sameWords;
    if (same === undefined) {
      const [was, is] = [first.whenToDelegate, rule.whenToDelegate].map(shown);
      return [{ path: `${path}.when_to_delegate`, before: was ?? "", after: is ?? "" }];
    }
    if (sameWords.some((one) => narrowsPredicate(rule, one))) return [];
    const [was, is] = [same, rule].map(({ predicate = "" }) => shown(predicate));
    return [{ path: `${path}.predicate`, before: was ?? "", after: is ?? "" }];
  });
}

/** A predicate where there was none narrows; what another predicate allows no program can tell. */
function narrowsPredicate(after: Rule, before: Rule): boolean {
  const [is, was] = [after.predicate ?? "", before.predicate ?? ""];
  return was === "" || was === is;
}

function overseerWidenings(after: AgentManifest, before: AgentManifest): Widening[] {
  const [was, is] = [overseerOf(before), overseerOf(after)];
  if (was === "" || was === is) return [];
  return [{ path: "agent.manifest.overseer", before: was, after: is === "" ? "none" : is }];
}

/** The overseer that a manifest names; empty for none. */
export function overseerOf(manifest: AgentManifest | undefined): string {
  return manifest?.overseer.case === "overseerId" ? manifest.overseer.value : "";
}

/** The limits of a delegation policy. The price is no limit. (DelegateOS 14.2) */
function limitWidenings(after: Bounded, own: Bounded | undefined): Widening[] {
  const [was, is] = [own?.delegation?.delegationPolicy, after.delegation?.delegationPolicy];
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

function shown(text: string): string {
  const points = Array.from(text);
  if (points.length === 0) return "none";
  return points.length <= SHOWN ? text : `${points.slice(0, SHOWN).join("")}…`;
}
