import { create } from "@bufbuild/protobuf";
import type { HandlerContext, ServiceImpl } from "@connectrpc/connect";
import { AgentStatus } from "@depute/contracts/depute/registry/v1/agent_pb";
import {
  type CheckDelegationRequest,
  type CheckDelegationResponse,
  CheckDelegationResponseSchema,
  type CheckToolAccessRequest,
  CheckToolAccessResponseSchema,
  type DelegatedWork,
  PolicyDecision,
  type PolicyService,
} from "@depute/contracts/depute/registry/v1/policy_service_pb";
import { DeputeError, ErrorReason } from "@depute/core";
import { type Identity, mayActFor } from "@depute/service";
import type { ReadTx } from "@depute/store";
import { identify, type RegistryContext, viewerFor } from "../context.ts";
import type { StoredAgent, Viewer } from "../rules/agent.ts";
import { overseerOf } from "../rules/bounds.ts";
import {
  checkDelegation,
  checkToolAccess,
  isRole,
  ORCHESTRATOR,
  type ToolQuestion,
} from "../rules/policy.ts";
import type { PartyFacts, PredicateFacts } from "../rules/predicate.ts";
import { baseOf } from "../rules/registration.ts";
import { decay, trustScore } from "../rules/trust.ts";
import { findVisible } from "../store/agents.ts";
import { boundAgents } from "../store/bound-agents.ts";
import { isMember } from "../store/visibility.ts";
import { findTrustOrInitial } from "./initial-trust.ts";

export function policyService(registry: RegistryContext): ServiceImpl<typeof PolicyService> {
  return {
    checkDelegation: (request, context) => decideDelegation(registry, request, context),
    checkToolAccess: (request, context) => decideToolAccess(registry, request, context),
  };
}

async function decideDelegation(
  registry: RegistryContext,
  request: CheckDelegationRequest,
  context: HandlerContext,
) {
  const identity = await identify(registry, context);
  if (request.fromPrincipal !== "") return decideDelegationForKey(registry, identity, request);
  const { fromAgentId: fromId, toAgentId: toId } = request;
  const viewer = viewerFor(identity, "");
  const now = registry.clock.now();
  const { from, fromFacts, delegate } = await registry.store.read(async (tx) => {
    const from = await findParty(tx, fromId, viewer);
    // A delegator must see the agent to which it delegates. So the lookup has the delegator as viewer, even if the
    // caller may see more agents than the delegator.
    const sight =
      from === undefined || from.record.principal === "" ? viewer : { principal: from.record.principal };
    return {
      from,
      fromFacts: await partyFacts(tx, fromId, from),
      delegate: await findDelegate(tx, toId, sight, now),
    };
  });
  checkIsParty(registry, identity, fromId, from, delegate.to);
  return decideByManifest(registry, request, fromFacts, from, delegate);
}

/** The delegate of a delegation, with its facts and trust score. */
interface Delegate {
  readonly to: StoredAgent | undefined;
  readonly facts: PartyFacts;
  readonly trust: number;
}

async function findDelegate(tx: ReadTx, id: string, sight: Viewer, now: number): Promise<Delegate> {
  const to = await findParty(tx, id, sight);
  const trustState = to && (await findTrustOrInitial(tx, to, baseOf(id) ?? id, "", now)).trust;
  const trust = trustState === undefined ? 0 : trustScore(decay(trustState, now));
  return { to, facts: await partyFacts(tx, id, to), trust };
}

function decideByManifest(
  registry: RegistryContext,
  { toAgentId: toId, justification, task }: CheckDelegationRequest,
  fromFacts: PartyFacts,
  from: StoredAgent | undefined,
  { to, facts: toFacts, trust }: Delegate,
) {
  const { orchestratorMay } = registry;
  const fromId = fromFacts.id;
  const { decision, ...rule } = checkDelegation({
    fromId,
    toId,
    from: from?.record,
    to: to?.record,
    justification,
    orchestratorMay,
    evaluate: (predicate) =>
      registry.predicates.evaluate(predicate, {
        from: fromFacts,
        to: { ...toFacts, trust },
        justification,
        task: taskFacts(task),
      }),
  });
  const allowed = decision === PolicyDecision.ALLOWED;
  const overseerId = allowed ? overseerOf(to?.record.manifest) : "";
  const agentId = from === undefined ? "" : fromId;
  return create(CheckDelegationResponseSchema, { allowed, decision, overseerId, agentId, ...rule });
}

/**
 * Decides whether a key may delegate. A key that no manifest binds may delegate to any agent. At least one of the
 * manifests that bind a key must allow the delegation. Otherwise the response has the refusal of the first manifest
 * that names the target. If no manifest names the target, the response has the refusal of the first manifest.
 */
async function decideDelegationForKey(
  registry: RegistryContext,
  identity: Identity,
  request: CheckDelegationRequest,
) {
  const { fromPrincipal: principal, toAgentId: toId } = request;
  const now = registry.clock.now();
  return registry.store.read(async (tx) => {
    let delegate: Delegate | undefined;
    let refusal: CheckDelegationResponse | undefined;
    let isNamed = false;
    for await (const from of boundAgents(tx, principal)) {
      checkIsKey(identity, principal, "from_principal");
      delegate ??= await findDelegate(tx, toId, { principal }, now);
      const activeAgent = unlessRemoved(from);
      const facts = await partyFacts(tx, from.record.id, activeAgent);
      const answer = decideByManifest(registry, request, facts, activeAgent, delegate);
      answer.agentId = from.record.id;
      if (answer.allowed) return answer;
      const names = from.record.manifest?.allowedAgents.includes(baseOf(toId) ?? toId) === true;
      if (refusal === undefined || (names && !isNamed)) refusal = answer;
      isNamed ||= names;
    }
    if (refusal !== undefined) return refusal;
    return create(CheckDelegationResponseSchema, { allowed: true, decision: PolicyDecision.NOT_BOUND });
  });
}

/**
 * Returns the agent; undefined if it was removed. The manifest of a removed agent still binds the agent's key, but
 * permits nothing.
 */
function unlessRemoved(agent: StoredAgent): StoredAgent | undefined {
  return agent.status === AgentStatus.REMOVED ? undefined : agent;
}

function checkIsKey(identity: Identity, principal: string, field: string): void {
  if (mayActFor(identity, principal)) return;
  throw new DeputeError(ErrorReason.CALLER_NOT_ALLOWED, "only the holder of the key may make this call", {
    violations: [{ field, description: "is not the caller's" }],
  });
}

/**
 * Returns the facts about a party. Any agent may put the name of any organization into its record. So the facts include
 * the organization only if the agent's principal is a member of it, or if the agent has no principal. For an agent
 * without an organization, the fact is empty. A predicate that uses an absent fact fails.
 */
async function partyFacts(tx: ReadTx, id: string, agent: StoredAgent | undefined): Promise<PartyFacts> {
  const { principal = "", organization: organizationName = "", tags = [] } = agent?.record ?? {};
  const isOrganizationMember = principal === "" || (await isMember(tx, organizationName, principal));
  return {
    id,
    principal,
    tags,
    ...((isOrganizationMember || organizationName === "") && { organization: organizationName }),
  };
}

/** Returns the facts about a task. Unknown facts are absent; a predicate that uses an absent fact fails. */
function taskFacts(task: DelegatedWork | undefined): PredicateFacts["task"] {
  if (task === undefined) return {};
  const facts: Record<string, string | bigint | string[]> = {
    capability: task.capabilityId,
    priority: BigInt(task.priority),
    attachments: task.attachmentTypes,
  };
  if (task.depth !== undefined) facts.depth = BigInt(task.depth);
  if (task.maxCostMicrocents !== undefined) facts.max_cost_microcents = task.maxCostMicrocents;
  if (task.maxTokens !== undefined) facts.max_tokens = task.maxTokens;
  return facts;
}

/**
 * Requires that the caller may act for one of the parties, because the response reveals parts of manifests. The
 * principals of DEPUTE_ORCHESTRATOR_PRINCIPALS may act for `orchestrator`. If neither party is registered, and the
 * delegator is not a role, any caller may ask.
 *
 * @throws DeputeError CALLER_NOT_ALLOWED
 */
function checkIsParty(
  { orchestrators }: RegistryContext,
  identity: Identity,
  fromId: string,
  from: StoredAgent | undefined,
  to: StoredAgent | undefined,
): void {
  const parties = [from, to].filter((party) => party !== undefined);
  if (parties.some(({ record }) => mayActFor(identity, record.principal)) || identity.local) return;
  if (fromId === ORCHESTRATOR && orchestrators.includes(identity.principal)) return;
  if (parties.length === 0 && !isRole(fromId)) return;
  throw new DeputeError(ErrorReason.CALLER_NOT_ALLOWED, "the caller must act for one of the two agents", {
    violations: [
      { field: "from_agent_id", description: "neither this agent nor to_agent_id belongs to the caller" },
    ],
  });
}

async function decideToolAccess(
  registry: RegistryContext,
  { agentId, principal, ...question }: CheckToolAccessRequest,
  context: HandlerContext,
) {
  const identity = await identify(registry, context);
  if (principal !== "") return decideToolForKey(registry, identity, principal, question);
  const agent = await registry.store.read((tx) => findParty(tx, agentId, viewerFor(identity, "")));
  if (agent !== undefined && !mayActFor(identity, agent.record.principal)) {
    throw new DeputeError(ErrorReason.CALLER_NOT_ALLOWED, "only the agent's principal may make this call", {
      violations: [{ field: "agent_id", description: "is not the caller's" }],
    });
  }
  const decision = checkToolAccess(agent?.record, question);
  return create(CheckToolAccessResponseSchema, { allowed: decision === PolicyDecision.ALLOWED, decision });
}

/**
 * Decides whether a key may call a tool. A key that no manifest binds may call any tool. At least one of the manifests
 * that bind a key must allow the tool.
 */
async function decideToolForKey(
  registry: RegistryContext,
  identity: Identity,
  principal: string,
  question: ToolQuestion,
) {
  return registry.store.read(async (tx) => {
    let decision: PolicyDecision = PolicyDecision.NOT_BOUND;
    for await (const agent of boundAgents(tx, principal)) {
      checkIsKey(identity, principal, "principal");
      decision = checkToolAccess(unlessRemoved(agent)?.record, question);
      if (decision === PolicyDecision.ALLOWED) break;
    }
    const allowed = decision === PolicyDecision.ALLOWED || decision === PolicyDecision.NOT_BOUND;
    return create(CheckToolAccessResponseSchema, { allowed, decision });
  });
}

async function findParty(tx: ReadTx, id: string, viewer: Viewer): Promise<StoredAgent | undefined> {
  const agent = isRole(id) ? undefined : await findVisible(tx, id, viewer);
  return agent?.status === AgentStatus.REMOVED ? undefined : agent;
}
