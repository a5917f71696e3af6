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
import type { WriteTx } from "@depute/store";
import {
  agentNotFound,
  announce,
  checkMayActFor,
  findOwn,
  identify,
  type RegistryContext,
  viewerFor,
} from "../context.ts";
import { isLiving, present, type StoredAgent } from "../rules/agent.ts";
import { MAX_INSTANCES } from "../rules/instances.ts";
import { leaseExpiry } from "../rules/liveness.ts";
import { findVisible, listInstances, putState } from "../store/agents.ts";
import { putLease, retireLease } from "../store/leases.ts";
import { sees, seesAtOnce } from "../store/sight.ts";
import { getAgentVersion, listAgentVersions } from "./agent-versions.ts";
import { getAgentCard } from "./get-agent-card.ts";
import { listAgents } from "./list-agents.ts";
import { publishCapabilities } from "./publish-capabilities.ts";
import { registerAgent } from "./register-agent.ts";
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
  const { id } = request;
  const viewer = viewerFor(await identify(registry, context), request.viewer);
  const { store, recent, guard } = registry;
  const known = recent.get(id);
  const counted = guard.counted;
  if (known !== undefined && counted !== undefined && seesAtOnce(viewer, known.record)) {
    return create(GetAgentResponseSchema, { agent: present(known, counted) });
  }
  const keep = recent.reading(id);
  const { agent, view } = await store.read(async (tx) => ({
    agent: await findVisible(tx, id, viewer),
    view: await guard.view(tx),
  }));
  if (agent === undefined) throw agentNotFound(id);
  keep(agent);
  return create(GetAgentResponseSchema, { agent: present(agent, view) });
}

async function getAgentByUri(
  registry: RegistryContext,
  { uri, viewer: named }: GetAgentByUriRequest,
  context: HandlerContext,
) {
  const viewer = viewerFor(await identify(registry, context), named);
  const agent = await registry.store.read(async (tx) => {
    const found = await registry.authorities.find(tx, uri);
    if (found === undefined || !(await sees(tx, viewer, found.record))) return undefined;
    return present(found, await registry.guard.view(tx));
  });
  if (agent === undefined) throw agentNotFound(uri);
  return create(GetAgentByUriResponseSchema, { agent });
}

async function heartbeatAgent(
  registry: RegistryContext,
  { id }: HeartbeatAgentRequest,
  context: HandlerContext,
) {
  const identity = await identify(registry, context);
  const agent = await registry.store.write(async (tx) => {
    const known = await findOwn(tx, identity, id, "id");
    const now = registry.clock.now();
    const expireTime = leaseExpiry(now, Number(known.record.leaseMs));
    await putLease(tx, registry, id, now, expireTime);
    // A beat of an agent that was not lost changes nothing that others see.
    if (!isLiving(known, { now, asOf: now })) {
      await announce(registry, tx, AgentChangeKind.RETURNED, known.record);
    }
    return present({ ...known, heartbeatTime: now, expireTime }, { now, asOf: now });
  });
  return create(HeartbeatAgentResponseSchema, { agent });
}

async function deregisterAgent(
  registry: RegistryContext,
  { id, message }: DeregisterAgentRequest,
  context: HandlerContext,
) {
  const identity = await identify(registry, context);
  const agent = await registry.store.write(async (tx) => {
    const view = await registry.guard.view(tx);
    const known = await findVisible(tx, id, viewerFor(identity, ""));
    if (known === undefined) throw agentNotFound(id);
    checkMayActFor(identity, known.record.principal, "id");
    if (known.status === AgentStatus.REMOVED) return present(known, view);
    const removed = await remove(registry, tx, known, message, view.now);
    // An instance is nothing without what it has from its base.
    for (const instance of await listInstances(tx, id, MAX_INSTANCES)) {
      if (instance.status !== AgentStatus.REMOVED) await remove(registry, tx, instance, message, view.now);
    }
    return present(removed, view);
  });
  return create(DeregisterAgentResponseSchema, { agent });
}

async function remove(
  registry: RegistryContext,
  tx: WriteTx,
  agent: StoredAgent,
  statusMessage: string,
  now: number,
): Promise<StoredAgent> {
  const removed: StoredAgent = { ...agent, status: AgentStatus.REMOVED, statusMessage, updateTime: now };
  await putState(tx, registry, removed);
  await retireLease(tx, agent.record.id);
  await announce(registry, tx, AgentChangeKind.REMOVED, agent.record);
  return removed;
}

async function setAgentStatus(
  registry: RegistryContext,
  { id, status, message }: SetAgentStatusRequest,
  context: HandlerContext,
) {
  const identity = await identify(registry, context);
  const agent = await registry.store.write(async (tx) => {
    const view = await registry.guard.view(tx);
    const known = await findOwn(tx, identity, id, "id");
    if (known.status === status && known.statusMessage === message) return present(known, view);
    const changed: StoredAgent = { ...known, status, statusMessage: message, updateTime: view.now };
    await putState(tx, registry, changed);
    await announce(registry, tx, AgentChangeKind.STATUS, known.record);
    return present(changed, view);
  });
  return create(SetAgentStatusResponseSchema, { agent });
}
