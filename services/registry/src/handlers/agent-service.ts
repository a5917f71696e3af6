import { create } from "@bufbuild/protobuf";
import type { HandlerContext, ServiceImpl } from "@connectrpc/connect";
import { AgentStatus } from "@depute/contracts/depute/registry/v1/agent_pb";
import {
  AgentChangeKind,
  type AgentService,
  type DeregisterAgentRequest,
  DeregisterAgentResponseSchema,
  type GetAgentByUriRequest,
  GetAgentByUriResponseSchema,
  type GetAgentRequest,
  GetAgentResponseSchema,
  type HeartbeatAgentRequest,
  HeartbeatAgentResponseSchema,
  type SetAgentStatusRequest,
  SetAgentStatusResponseSchema,
} from "@depute/contracts/depute/registry/v1/agent_service_pb";
import {
  agentNotFound,
  findAgentToEnd,
  findCallersAgent,
  identify,
  type RegistryContext,
  recordChange,
  viewerFor,
} from "../context.ts";
import {
  isLive,
  isVisibleByRecord,
  leaseExpiry,
  leaseMsOf,
  type StoredAgent,
  toAgentMessage,
} from "../rules/agent.ts";
import { MAX_INSTANCES } from "../rules/instances.ts";
import { findVisible, listInstances, putState } from "../store/agents.ts";
import { putLease } from "../store/leases.ts";
import { isVisible } from "../store/visibility.ts";
import { getAgentVersion, listAgentVersions } from "./agent-versions.ts";
import { getAgentCard } from "./get-agent-card.ts";
import { listAgents } from "./list-agents.ts";
import { publishCapabilities } from "./publish-capabilities.ts";
import { registerAgent } from "./register-agent.ts";
import { removeAgent } from "./remove-agent.ts";
import { replacePrincipal } from "./replace-principal.ts";
import { watchAgents } from "./watch-agents.ts";

export function agentService(registry: RegistryContext): ServiceImpl<typeof AgentService> {
  return {
    registerAgent: (request, context) => registerAgent(registry, request, context),
    getAgent: (request, context) => getAgent(registry, request, context),
    getAgentByUri: (request, context) => getAgentByUri(registry, request, context),
    listAgents: (request, context) => listAgents(registry, request, context),
    heartbeatAgent: (request, context) => heartbeatAgent(registry, request, context),
    deregisterAgent: (request, context) => deregisterAgent(registry, request, context),
    publishCapabilities: (request, context) => publishCapabilities(registry, request, context),
    setAgentStatus: (request, context) => setAgentStatus(registry, request, context),
    replacePrincipal: (request, context) => replacePrincipal(registry, request, context),
    getAgentVersion: (request, context) => getAgentVersion(registry, request, context),
    getAgentCard: (request, context) => getAgentCard(registry, request, context),
    watchAgents: (request, context) => watchAgents(registry, request, context),
    listAgentVersions: (request, context) => listAgentVersions(registry, request, context),
  };
}

async function getAgent(registry: RegistryContext, request: GetAgentRequest, context: HandlerContext) {
  const { agentId: id } = request;
  const viewer = viewerFor(await identify(registry, context), request.viewer);
  const { store, recent, guard } = registry;
  const recentWrite = recent.get(id);
  const cachedView = guard.cachedView;
  if (
    recentWrite !== undefined &&
    cachedView !== undefined &&
    isVisibleByRecord(viewer, recentWrite.record)
  ) {
    return create(GetAgentResponseSchema, { agent: toAgentMessage(recentWrite, cachedView) });
  }
  const keep = recent.reading(id);
  const { agent, view } = await store.read(async (tx) => ({
    agent: await findVisible(tx, id, viewer),
    view: await guard.view(tx),
  }));
  if (agent === undefined) throw agentNotFound(id);
  keep(agent);
  return create(GetAgentResponseSchema, { agent: toAgentMessage(agent, view) });
}

async function getAgentByUri(
  registry: RegistryContext,
  { uri, viewer: requestedViewer }: GetAgentByUriRequest,
  context: HandlerContext,
) {
  const viewer = viewerFor(await identify(registry, context), requestedViewer);
  const agent = await registry.store.read(async (tx) => {
    const authority = await registry.authorities.find(tx, uri);
    if (authority === undefined || !(await isVisible(tx, viewer, authority.record))) return undefined;
    return toAgentMessage(authority, await registry.guard.view(tx));
  });
  if (agent === undefined) throw agentNotFound(uri);
  return create(GetAgentByUriResponseSchema, { agent });
}

async function heartbeatAgent(
  registry: RegistryContext,
  { agentId: id }: HeartbeatAgentRequest,
  context: HandlerContext,
) {
  const identity = await identify(registry, context);
  const agent = await registry.store.write(async (tx) => {
    const callersAgent = await findCallersAgent(tx, identity, id, "id");
    const now = registry.clock.now();
    const expireTime = leaseExpiry(now, leaseMsOf(callersAgent.record));
    await putLease(tx, registry, id, now, expireTime);
    // Records no change for the heartbeat of a live agent, because watchers see no difference.
    if (!isLive(callersAgent, { now, asOf: now })) {
      await recordChange(registry, tx, AgentChangeKind.RETURNED, callersAgent.record);
    }
    return toAgentMessage({ ...callersAgent, heartbeatTime: now, expireTime }, { now, asOf: now });
  });
  return create(HeartbeatAgentResponseSchema, { agent });
}

async function deregisterAgent(
  registry: RegistryContext,
  { agentId: id, message }: DeregisterAgentRequest,
  context: HandlerContext,
) {
  const identity = await identify(registry, context);
  const agent = await registry.store.write(async (tx) => {
    const view = await registry.guard.view(tx);
    const visibleAgent = await findAgentToEnd(tx, identity, id, "id");
    if (visibleAgent.status === AgentStatus.REMOVED) return toAgentMessage(visibleAgent, view);
    const removed = await removeAgent(registry, tx, visibleAgent, message, view.now);
    // Removes the instances too, because an instance cannot exist without its base.
    for (const instance of await listInstances(tx, id, MAX_INSTANCES)) {
      if (instance.status !== AgentStatus.REMOVED)
        await removeAgent(registry, tx, instance, message, view.now);
    }
    return toAgentMessage(removed, view);
  });
  return create(DeregisterAgentResponseSchema, { agent });
}

async function setAgentStatus(
  registry: RegistryContext,
  { agentId: id, status, message }: SetAgentStatusRequest,
  context: HandlerContext,
) {
  const identity = await identify(registry, context);
  const agent = await registry.store.write(async (tx) => {
    const view = await registry.guard.view(tx);
    const callersAgent = await findAgentToEnd(tx, identity, id, "id");
    if (callersAgent.status === AgentStatus.REMOVED) throw agentNotFound(id);
    if (callersAgent.status === status && callersAgent.statusMessage === message)
      return toAgentMessage(callersAgent, view);
    const changed: StoredAgent = { ...callersAgent, status, statusMessage: message, updateTime: view.now };
    await putState(tx, registry, changed);
    await recordChange(registry, tx, AgentChangeKind.STATUS, callersAgent.record);
    return toAgentMessage(changed, view);
  });
  return create(SetAgentStatusResponseSchema, { agent });
}
