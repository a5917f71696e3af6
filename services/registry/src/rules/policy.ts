import type { AgentManifest } from "@depute/contracts/cap/v1/manifest_pb";
import { PolicyDecision } from "@depute/contracts/depute/registry/v1/policy_service_pb";
import type { Verdict } from "./predicate.ts";
import { baseOf } from "./registration.ts";

/** CAP's participants that are no agents. */
export const USER = "user";
export const ORCHESTRATOR = "orchestrator";

/** Whether an id is a role of CAP. */
export function isRole(id: string): boolean {
  return id === USER || id === ORCHESTRATOR;
}

/** What is known of a party; undefined for one that is not registered. A role needs none. */
export interface Party {
  readonly manifest?: AgentManifest | undefined;
}

/** One delegation that is asked about. */
export interface DelegationQuestion {
  readonly fromId: string;
  readonly toId: string;
  readonly from: Party | undefined;
  readonly to: Party | undefined;
  readonly justification: string;
  /** Whether the platform lets the orchestrator delegate. */
  readonly orchestratorMay: boolean;
  /** What a predicate says of this delegation. */
  readonly judge: (predicate: string) => Verdict;
}

export interface DelegationAnswer {
  readonly decision: PolicyDecision;
  /** The condition of the rule that it went by, and the predicate, empty where there is none. */
  readonly whenToDelegate: string;
  readonly predicate: string;
  /** Why the predicate could not be decided, or empty. */
  readonly predicateFailure: string;
}

/**
 * Whether one agent may delegate to another: only to its allowed_agents, only where a rule says when, and only with a
 * stated reason. (CAP "Delegation")
 *
 * Depute's choice: an allowed agent without a rule cannot be delegated to, because the text makes every delegation depend
 * on the rule; the reason is recorded and not judged, because a condition in words is for who reads it, while a predicate
 * beside it is for a program, and one that cannot be decided is not met; `orchestrator`, which has no manifest, may delegate
 * to every agent where the platform is set so, and `user` to none.
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
  const verdict = question.judge(predicate);
  if ("failure" in verdict) return answer(PolicyDecision.PREDICATE_FAILED, verdict.failure);
  return answer(verdict.holds ? PolicyDecision.ALLOWED : PolicyDecision.PREDICATE_NOT_MET);
}

function denied(decision: PolicyDecision): DelegationAnswer {
  return { decision, whenToDelegate: "", predicate: "", predicateFailure: "" };
}

/** One tool that is asked about. */
export interface ToolQuestion {
  readonly serverId: string;
  readonly tool: string;
  /** Empty where the call needs none. */
  readonly scope: string;
}

/**
 * Whether an agent may call a tool: one binding of the server has to allow the tool and hold the scope. (CAP "MCP
 * Integration")
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
