import type { AgentManifest } from "@depute/contracts/cap/v1/manifest_pb";
import { PolicyDecision } from "@depute/contracts/depute/registry/v1/policy_service_pb";
import type { Verdict } from "./predicate.ts";
import { baseOf } from "./registration.ts";

/** The ids of CAP's roles, which take part in delegations but are not agents. */
export const USER = "user";
export const ORCHESTRATOR = "orchestrator";

/** Whether an id names a role of CAP. */
export function isRole(id: string): boolean {
  return id === USER || id === ORCHESTRATOR;
}

/**
 * A registered agent in a delegation. The party is undefined if it is not registered; CAP's roles are never registered.
 */
export interface Party {
  readonly manifest?: AgentManifest | undefined;
}

/** The facts for the decision about one delegation. */
export interface DelegationQuestion {
  readonly fromId: string;
  readonly toId: string;
  readonly from: Party | undefined;
  readonly to: Party | undefined;
  readonly justification: string;
  /** Whether the platform permits delegations by the orchestrator. */
  readonly orchestratorMay: boolean;
  /** Evaluates a predicate with the facts of this delegation. */
  readonly evaluate: (predicate: string) => Verdict;
}

export interface DelegationAnswer {
  readonly decision: PolicyDecision;
  /**
   * The condition (`whenToDelegate`) and the predicate of the rule for the target; empty if the decision did not reach
   * the rule.
   */
  readonly whenToDelegate: string;
  readonly predicate: string;
  /** The reason why the evaluation of the predicate failed; empty if it did not fail. */
  readonly predicateFailure: string;
}

/**
 * Decides whether one agent may delegate to another. Three conditions: the target is in allowed_agents, a rule has a
 * condition for the target, and the delegator states a justification. (CAP "Delegation") Depute's choices:
 * - An allowed agent without a rule is refused, because CAP bases every delegation on a rule.
 * - No program evaluates the justification, because conditions in words are for people. Programs evaluate the
 * predicate; if its evaluation fails, the condition is not met.
 * - `orchestrator` has no manifest. It may delegate to every agent if the platform's setting permits it. `user` may not
 * delegate to any.
 */
export function checkDelegation(question: DelegationQuestion): DelegationAnswer {
  const { fromId, toId, from, to } = question;
  if (isRole(toId) || fromId === USER) return denied(PolicyDecision.ROLE);
  if (fromId === ORCHESTRATOR) {
    if (!question.orchestratorMay) return denied(PolicyDecision.ROLE);
    return denied(to === undefined ? PolicyDecision.UNKNOWN_AGENT : PolicyDecision.ALLOWED);
  }
  if (from === undefined || to === undefined) return denied(PolicyDecision.UNKNOWN_AGENT);
  const { manifest } = from;
  if (manifest === undefined) return denied(PolicyDecision.NO_MANIFEST);
  const target = baseOf(toId) ?? toId;
  if (fromId === toId || !manifest.allowedAgents.includes(target)) return denied(PolicyDecision.NOT_ALLOWED);
  const rule = Object.hasOwn(manifest.delegateRules, target) ? manifest.delegateRules[target] : undefined;
  if (rule === undefined) return denied(PolicyDecision.NO_RULE);
  const { whenToDelegate, predicate = "" } = rule;
  const answer = (decision: PolicyDecision, predicateFailure = ""): DelegationAnswer => ({
    decision,
    whenToDelegate,
    predicate,
    predicateFailure,
  });
  if (question.justification.trim() === "") return answer(PolicyDecision.NO_JUSTIFICATION);
  if (predicate === "") return answer(PolicyDecision.ALLOWED);
  const verdict = question.evaluate(predicate);
  if ("failure" in verdict) return answer(PolicyDecision.PREDICATE_FAILED, verdict.failure);
  return answer(verdict.holds ? PolicyDecision.ALLOWED : PolicyDecision.PREDICATE_NOT_MET);
}

function denied(decision: PolicyDecision): DelegationAnswer {
  return { decision, whenToDelegate: "", predicate: "", predicateFailure: "" };
}

/** The facts for the decision about one call of a tool. */
export interface ToolQuestion {
  readonly serverId: string;
  readonly tool: string;
  /** The scope that the call names; empty for none. */
  readonly scope: string;
}

/**
 * Decides whether an agent may call a tool. At least one binding of the server must allow both the tool and the scope.
 * For a call without a scope, the tool is enough. (CAP "MCP Integration")
 */
export function checkToolAccess(
  agent: Party | undefined,
  { serverId, tool, scope }: ToolQuestion,
): PolicyDecision {
  if (agent === undefined) return PolicyDecision.UNKNOWN_AGENT;
  if (agent.manifest === undefined) return PolicyDecision.NO_MANIFEST;
  const bindings = agent.manifest.mcpBindings.filter((binding) => binding.serverId === serverId);
  if (bindings.length === 0) return PolicyDecision.SERVER_NOT_BOUND;
  const allowing = bindings.filter(({ allowedTools }) => allowedTools.includes(tool));
  if (allowing.length === 0) return PolicyDecision.TOOL_NOT_ALLOWED;
  const granting = scope === "" || allowing.some(({ scopes }) => scopes.includes(scope));
  return granting ? PolicyDecision.ALLOWED : PolicyDecision.SCOPE_NOT_GRANTED;
}
