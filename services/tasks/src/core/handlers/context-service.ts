import type { HandlerContext, ServiceImpl } from "@connectrpc/connect";
import { AgentStatus } from "@depute/contracts/depute/registry/v1/agent_pb";
import type {
  ContextService,
  ShareContextRequest,
} from "@depute/contracts/depute/tasks/v1/context_service_pb";
import { DeputeError, ErrorReason, requestIdReused } from "@depute/core";
import type { ReadTx, WriteTx } from "@depute/store";
import type { Caller } from "../caller.ts";
import type { ContextMemory } from "../contexts/context-memory.ts";
import { type ContextName, lookUp, revokeWithDerived, shown, sourcesOf } from "../contexts/contexts.ts";
import {
  checkEnvelope,
  contextIdTaken,
  keepContexts,
  newContext,
  orGivesWay,
} from "../contexts/new-context.ts";
import {
  type ContextRecord,
  contextNotFound,
  isOwner,
  mayRead,
  type Reader,
  requireLasting,
  requireReader,
  requireScope,
} from "../rules/context.ts";
import { findContextOfRequest } from "../store/context-rows.ts";
import { callerOf, callOptions, type TasksContext } from "./context.ts";

/** What those call who share data. */
export function contextService(tasks: TasksContext): ServiceImpl<typeof ContextService> {
  const { engine, contextMemory: memory, clock } = tasks;
  return {
    async shareContext(request, context) {
      return { context: shown(await share(tasks, request, context), "without") };
    },

    async requestContext({ name, capabilityId }, context) {
      const caller = await callerOf(tasks, context);
      const record = await engine.store.read((tx) => find(tx, memory, caller, name));
      requireReader(caller, record, clock.now());
      requireScope(record, capabilityId);
      return { context: shown(record, "with its data") };
    },

    async revokeContext({ name }, context) {
      const caller = await callerOf(tasks, context);
      const record = await engine.store.write(async (tx) => {
        const found = await find(tx, memory, caller, name);
        if (!isOwner(caller, found)) {
          throw new DeputeError(ErrorReason.CALLER_NOT_ALLOWED, "only its owner can revoke a context");
        }
        if (!found.isRevoked) requireLasting(found, clock.now());
        await revokeWithDerived(tx, memory, found);
        return found;
      });
      return { context: shown(record, "without") };
    },
  };
}

/** A context that the caller may know of. */
async function find(
  tx: ReadTx,
  memory: ContextMemory,
  caller: Caller,
  name: ContextName,
): Promise<ContextRecord> {
  const record = await lookUp(tx, memory, caller.principal, name);
  if (record === undefined || !mayRead(caller, record)) throw contextNotFound(name.value ?? "");
  return record;
}

async function share(
  tasks: TasksContext,
  request: ShareContextRequest,
  context: HandlerContext,
): Promise<ContextRecord> {
  const { engine, contextMemory: memory, clock } = tasks;
  const caller = await callerOf(tasks, context);
  const nowMs = clock.now();
  if (request.envelope !== undefined) checkEnvelope(request.envelope, "envelope");
  const readers = await readersOf(tasks, request, caller.principal, context);
  const record = newContext(request, caller.principal, readers, nowMs);
  return engine.store.write(async (tx) => {
    const known = await findKnown(tx, memory, record, nowMs);
    if (known !== undefined) return known;
    const maker = { principal: caller.principal, viewer: caller };
    const made = { ...record, derivedFrom: await sourcesOf(tx, memory, record, maker, nowMs) };
    await keepContexts(tx, memory, [made]);
    return made;
  });
}

/** @throws DeputeError REQUEST_ID_REUSED, CONTEXT_ID_TAKEN */
async function findKnown(tx: WriteTx, memory: ContextMemory, asked: ContextRecord, nowMs: number) {
  const { owner, requestId, externalId, digest } = asked;
  const found = await findContextOfRequest(tx, memory, owner, requestId);
  const byRequest = found?.digest === "" ? await orGivesWay(tx, found, nowMs) : found;
  // Nothing is known of what a request said whose data could not be persisted.
  if (byRequest !== undefined && byRequest.digest !== "" && byRequest.digest !== digest) {
    throw requestIdReused(requestId, "context");
  }
  if (byRequest !== undefined || externalId === "") return byRequest;
  const there = await lookUp(tx, memory, owner, { case: "externalId", value: externalId });
  const byId = await orGivesWay(tx, there, nowMs);
  if (byId === undefined) return undefined;
  requireLasting(byId, nowMs);
  if (byId.digest === digest) return byId;
  throw contextIdTaken(externalId);
}

async function readersOf(
  tasks: TasksContext,
  { readerAgentIds }: ShareContextRequest,
  viewer: string,
  context: HandlerContext,
): Promise<Reader[]> {
  const options = callOptions(tasks, context);
  return Promise.all(
    [...new Set(readerAgentIds)].map(async (id) => {
      const { agent } = await tasks.dependencies.agents.getAgent({ id, viewer }, options);
      if (agent?.status !== AgentStatus.ACTIVE) {
        throw new DeputeError(ErrorReason.AGENT_NOT_FOUND, "no such agent", { metadata: { agent: id } });
      }
      return { agentId: id, principal: agent.principal };
    }),
  );
}
