import { create } from "@bufbuild/protobuf";
import type { HandlerContext, ServiceImpl } from "@connectrpc/connect";
import { AgentStatus } from "@depute/contracts/depute/registry/v1/agent_pb";
import {
  type AgentService,
  type DeregisterAgentRequest,
  DeregisterAgentResponseSchema,
  type GetAgentRequest,
  GetAgentResponseSchema,
  type HeartbeatAgentRequest,
  HeartbeatAgentResponseSchema,
} from "@depute/contracts/depute/registry/v1/agent_service_pb";
import { agentNotFound, announce, checkMayActFor, identify, type RegistryContext } from "../context.ts";
import { isLiving, present, type StoredAgent } from "../rules/agent.ts";
import { leaseExpiry } from "../rules/liveness.ts";
import { findAgent, putAgent, putLease } from "../store/agents.ts";
import { listAgents } from "./list-agents.ts";
import { publishCapabilities } from "./publish-capabilities.ts";
import { registerAgent } from "./register-agent.ts";

export function agentService(registry: RegistryContext): ServiceImpl<typeof AgentService> {
  return {
    registerAgent: (request, context) => registerAgent(registry, request, context),
    getAgent: (request, context) => getAgent(registry, request, context),
    listAgents: (request, context) => listAgents(registry, request, context),
    heartbeatAgent: (request, context) => heartbeatAgent(registry, request, context),
    deregisterAgent: (request, context) => deregisterAgent(registry, request, context),
    publishCapabilities: (request, context) => publishCapabilities(registry, request, context),
  };
}

async function getAgent(registry: RegistryContext, { id }: GetAgentRequest, context: HandlerContext) {
  await identify(registry, context);
  const agent = await registry.store.read((tx) => findAgent(tx, id));
  if (agent === undefined) throw agentNotFound(id);
  return create(GetAgentResponseSchema, { agent: present(agent, registry.clock.now()) });
}

async function heartbeatAgent(
  registry: RegistryContext,
  { id }: HeartbeatAgentRequest,
  context: HandlerContext,
) {
  const identity = await identify(registry, context);
  const agent = await registry.store.write(async (tx): Promise<StoredAgent> => {
    const known = await findAgent(tx, id);
    if (known === undefined || known.status !== AgentStatus.ACTIVE) throw agentNotFound(id);
    checkMayActFor(identity, known.record.principal, "id");
    const now = registry.clock.now();
    const expireTime = leaseExpiry(now, Number(known.record.leaseMs));
    await putLease(tx, id, now, expireTime);
    // A beat of an agent that was not lost changes nothing that others see.
    if (!isLiving(known, now)) announce(registry, tx, id);
    return { ...known, heartbeatTime: now, expireTime };
  });
  return create(HeartbeatAgentResponseSchema, { agent: present(agent, registry.clock.now()) });
}

async function deregisterAgent(
  registry: RegistryContext,
  { id }: DeregisterAgentRequest,
  context: HandlerContext,
) {
  const identity = await identify(registry, context);
  const agent = await registry.store.write(async (tx): Promise<StoredAgent> => {
    const known = await findAgent(tx, id);
    if (known === undefined) throw agentNotFound(id);
    checkMayActFor(identity, known.record.principal, "id");
    if (known.status === AgentStatus.REMOVED) return known;
    const removed = { ...known, status: AgentStatus.REMOVED, updateTime: registry.clock.now() };
    await putAgent(tx, removed);
    announce(registry, tx, id);
    return removed;
  });
  return create(DeregisterAgentResponseSchema, { agent: present(agent, registry.clock.now()) });
}
