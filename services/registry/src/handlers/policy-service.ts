import { create } from "@bufbuild/protobuf";
import type { HandlerContext, ServiceImpl } from "@connectrpc/connect";
import { AgentStatus } from "@depute/contracts/depute/registry/v1/agent_pb";
import {
  type CheckDelegationRequest,
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
import { checkDelegation, checkToolAccess, isRole, ORCHESTRATOR } from "../rules/policy.ts";
import type { PartyFacts, PredicateFacts } from "../rules/predicate.ts";
import { baseOf } from "../rules/registration.ts";
import { decay, trustScore } from "../rules/trust.ts";
import { findVisible } from "../store/agents.ts";
import type { Viewer } from "../store/sight.ts";
import { trustOf } from "./record-evidence.ts";

export function policyService(registry: RegistryContext): ServiceImpl<typeof PolicyService> {
  return {
    checkDelegation: (request, context) => decideDelegation(registry, request, context),
    checkToolAccess: (request, context) => decideToolAccess(registry, request, context),
  };
}

async function decideDelegation(
  registry: RegistryContext,
  { fromAgentId: fromId, toAgentId: toId, justification, task }: CheckDelegationRequest,
  context: HandlerContext,
) {
  const identity = await identify(registry, context);
  const viewer = viewerFor(identity, "");
  const now = registry.clock.now();
  const { from, to, trust } = await registry.store.read(async (tx) => {
    const from = await find(tx, fromId, viewer);
    // What the delegator does not see it cannot delegate to, whoever asks.
    const sight =
      from === undefined || from.record.principal === "" ? viewer : { principal: from.record.principal };
    const seen = await find(tx, toId, sight);
    const trusted = seen && (await trustOf(tx, seen, baseOf(toId) ?? toId, "", now)).trust;
    return { from, to: seen, trust: trusted === undefined ? 0 : trustScore(decay(trusted, now)) };
  });
  checkAsker(registry, identity, fromId, from, to);
  const { orchestratorMay } = registry;
  const { decision, ...rule } = checkDelegation({
    fromId,
    toId,
    from: from?.record,
    to: to?.record,
    justification,
    orchestratorMay,
    judge: (predicate) =>
      registry.predicates.judge(predicate, {
        from: partyFacts(fromId, from),
        to: { ...partyFacts(toId, to), trust },
        justification,
        task: taskFacts(task),
      }),
  });
  const allowed = decision === PolicyDecision.ALLOWED;
  const overseer = to?.record.manifest?.overseer;
  const overseerId = allowed && overseer?.case === "overseerId" ? overseer.value : "";
  return create(CheckDelegationResponseSchema, { allowed, decision, overseerId, ...rule });
}

function partyFacts(id: string, agent: StoredAgent | undefined): PartyFacts {
  const { principal = "", organization = "", tags = [] } = agent?.record ?? {};
  return { id, principal, organization, tags };
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
  { agentId, ...question }: CheckToolAccessRequest,
  context: HandlerContext,
) {
  const identity = await identify(registry, context);
  const agent = await registry.store.read((tx) => find(tx, agentId, viewerFor(identity, "")));
  if (agent !== undefined && !mayActFor(identity, agent.record.principal)) {
    throw new DeputeError(ErrorReason.CALLER_NOT_ALLOWED, "only the agent's own principal may ask this", {
      violations: [{ field: "agent_id", description: "is not the caller's" }],
    });
  }
  const decision = checkToolAccess(agent?.record, question);
  return create(CheckToolAccessResponseSchema, { allowed: decision === PolicyDecision.ALLOWED, decision });
}

async function find(tx: ReadTx, id: string, viewer: Viewer): Promise<StoredAgent | undefined> {
  const agent = isRole(id) ? undefined : await findVisible(tx, id, viewer);
  return agent?.status === AgentStatus.REMOVED ? undefined : agent;
}
