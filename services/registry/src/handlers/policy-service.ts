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
import type { StoredAgent } from "../rules/agent.ts";
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
import { isMember, type Viewer } from "../store/sight.ts";
import { trustOf } from "./trust-of.ts";

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
  if (request.fromPrincipal !== "") return decideForKey(registry, identity, request);
  const { fromAgentId: fromId, toAgentId: toId } = request;
  const viewer = viewerFor(identity, "");
  const now = registry.clock.now();
  const { from, fromFacts, delegate } = await registry.store.read(async (tx) => {
    const from = await find(tx, fromId, viewer);
    // What the delegator does not see it cannot delegate to, whoever asks.
    const sight =
      from === undefined || from.record.principal === "" ? viewer : { principal: from.record.principal };
    return {
      from,
      fromFacts: await partyFacts(tx, fromId, from),
      delegate: await findDelegate(tx, toId, sight, now),
    };
  });
  checkAsker(registry, identity, fromId, from, delegate.to);
  return judged(registry, request, fromFacts, from, delegate);
}

/** The agent that would be delegated to, and how far it is trusted. */
interface Delegate {
  readonly to: StoredAgent | undefined;
  readonly facts: PartyFacts;
  readonly trust: number;
}

async function findDelegate(tx: ReadTx, id: string, sight: Viewer, now: number): Promise<Delegate> {
  const to = await find(tx, id, sight);
  const trusted = to && (await trustOf(tx, to, baseOf(id) ?? id, "", now)).trust;
  const trust = trusted === undefined ? 0 : trustScore(decay(trusted, now));
  return { to, facts: await partyFacts(tx, id, to), trust };
}

function judged(
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
    judge: (predicate) =>
      registry.predicates.judge(predicate, {
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
 * Decides for a key: one of the manifests that bind it has to allow the delegation. The refusal is that of the first manifest
 * that names the delegate, else of the first.
 */
async function decideForKey(registry: RegistryContext, identity: Identity, request: CheckDelegationRequest) {
  const { fromPrincipal: principal, toAgentId: toId } = request;
  const now = registry.clock.now();
  return registry.store.read(async (tx) => {
    let delegate: Delegate | undefined;
    let refusal: CheckDelegationResponse | undefined;
    let isNamed = false;
    for await (const from of boundAgents(tx, principal)) {
      checkKey(identity, principal, "from_principal");
      delegate ??= await findDelegate(tx, toId, { principal }, now);
      const granting = grantingOnly(from);
      const facts = await partyFacts(tx, from.record.id, granting);
      const answer = judged(registry, request, facts, granting, delegate);
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

/** A removed agent's manifest still binds its key, and allows nothing. */
function grantingOnly(agent: StoredAgent): StoredAgent | undefined {
  return agent.status === AgentStatus.REMOVED ? undefined : agent;
}

function checkKey(identity: Identity, principal: string, field: string): void {
  if (mayActFor(identity, principal)) return;
  throw new DeputeError(ErrorReason.CALLER_NOT_ALLOWED, "only the key itself may ask this", {
    violations: [{ field, description: "is not the caller's" }],
  });
}

/**
 * A record may name any organization. Where the principal is no member of it, the fact is absent, so that a predicate that
 * names it cannot be decided.
 */
async function partyFacts(tx: ReadTx, id: string, agent: StoredAgent | undefined): Promise<PartyFacts> {
  const { principal = "", organization: named = "", tags = [] } = agent?.record ?? {};
  const belongs = principal === "" || (await isMember(tx, named, principal));
  return { id, principal, tags, ...((belongs || named === "") && { organization: named }) };
}

/** What is not known of the work is absent, so that a predicate that names it cannot be decided. */
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

/** The manifests of others are not for everybody to try out. */
function checkAsker(
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
  throw new DeputeError(ErrorReason.CALLER_NOT_ALLOWED, "the caller acts for neither of the two", {
    violations: [{ field: "from_agent_id", description: "is not the caller's, nor is to_agent_id" }],
  });
}

async function decideToolAccess(
  registry: RegistryContext,
  { agentId, principal, ...question }: CheckToolAccessRequest,
  context: HandlerContext,
) {
  const identity = await identify(registry, context);
  if (principal !== "") return decideToolForKey(registry, identity, principal, question);
  const agent = await registry.store.read((tx) => find(tx, agentId, viewerFor(identity, "")));
  if (agent !== undefined && !mayActFor(identity, agent.record.principal)) {
    throw new DeputeError(ErrorReason.CALLER_NOT_ALLOWED, "only the agent's own principal may ask this", {
      violations: [{ field: "agent_id", description: "is not the caller's" }],
    });
  }
  const decision = checkToolAccess(agent?.record, question);
  return create(CheckToolAccessResponseSchema, { allowed: decision === PolicyDecision.ALLOWED, decision });
}

/** One of the manifests that bind a key has to allow the tool. */
async function decideToolForKey(
  registry: RegistryContext,
  identity: Identity,
  principal: string,
  question: ToolQuestion,
) {
  return registry.store.read(async (tx) => {
    let decision: PolicyDecision = PolicyDecision.NOT_BOUND;
    for await (const agent of boundAgents(tx, principal)) {
      checkKey(identity, principal, "principal");
      decision = checkToolAccess(grantingOnly(agent)?.record, question);
      if (decision === PolicyDecision.ALLOWED) break;
    }
    const allowed = decision === PolicyDecision.ALLOWED || decision === PolicyDecision.NOT_BOUND;
    return create(CheckToolAccessResponseSchema, { allowed, decision });
  });
}

async function find(tx: ReadTx, id: string, viewer: Viewer): Promise<StoredAgent | undefined> {
  const agent = isRole(id) ? undefined : await findVisible(tx, id, viewer);
  return agent?.status === AgentStatus.REMOVED ? undefined : agent;
}
