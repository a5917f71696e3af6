import type { HandlerContext, ServiceImpl } from "@connectrpc/connect";
import { AgentStatus } from "@depute/contracts/depute/registry/v1/agent_pb";
import type {
  ContextService,
  ShareContextRequest,
} from "@depute/contracts/depute/tasks/v1/context_service_pb";
import { DeputeError, ErrorReason, owningOrganization, requestIdReused } from "@depute/core";
import type { ReadTx, WriteTx } from "@depute/store";
import type { ContextMemory } from "../contexts/context-memory.ts";
import {
  type ContextName,
  checkEnvelope,
  contextIdTaken,
  keepContexts,
  lookUp,
  newContext,
  orGivesWay,
  orPresumed,
  revokeWithDerived,
  sourcesOf,
  toSharedContext,
} from "../contexts/contexts.ts";
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
import { findContextOfRequest, type HeldData } from "../store/context-rows.ts";
import { type Caller, callerOf, callOptions, type TasksContext } from "./context.ts";

/** Handles the calls of ContextService. */
export function contextService(tasks: TasksContext): ServiceImpl<typeof ContextService> {
  const { engine, contextMemory: memory, clock } = tasks;
  return {
    async shareContext(request, context) {
      return { context: toSharedContext(await share(tasks, request, context), "without") };
    },

    async requestContext({ name, capabilityId }, context) {
      const caller = await callerOf(tasks, context);
      const record = await memory.using(() => engine.store.read((tx) => find(tx, memory, caller, name)));
      requireReader(caller, record, clock.now());
      requireScope(record, capabilityId);
      return { context: toSharedContext(record, "with its data") };
    },

    async revokeContext({ name }, context) {
      const caller = await callerOf(tasks, context);
      const revokeWithin = async (tx: WriteTx) => {
        const contextRecord = await find(tx, orPresumed(memory), caller, name);
        if (!isOwner(caller, contextRecord)) {
          throw new DeputeError(
            ErrorReason.CALLER_NOT_ALLOWED,
            "only the owner of a context may revoke the context",
          );
        }
        if (!contextRecord.isRevoked) requireLasting(contextRecord, clock.now());
        await revokeWithDerived(tx, memory, contextRecord);
        return contextRecord;
      };
      const record = await memory.using(() => engine.store.write(revokeWithin));
      return { context: toSharedContext(record, "without") };
    },
  };
}

/** Returns a context that the caller may see. */
async function find(tx: ReadTx, memory: HeldData, caller: Caller, name: ContextName): Promise<ContextRecord> {
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
  const organization = owningOrganization(caller, undefined);
  const record = newContext(request, { owner: caller.principal, organization }, readers, nowMs);
  const shareWithin = async (tx: WriteTx) => {
    const existing = await findKnown(tx, memory, record, nowMs);
    if (existing !== undefined) return existing;
    const maker = { principal: caller.principal, viewer: caller };
    const derived = { ...record, derivedFrom: await sourcesOf(tx, memory, record, maker, nowMs) };
    await keepContexts(tx, memory, [derived]);
    return derived;
  };
  return memory.using(() => engine.store.write(shareWithin));
}

/** @throws DeputeError REQUEST_ID_REUSED, CONTEXT_ID_TAKEN, CONTEXT_EXPIRED (the owner has revoked the context) */
async function findKnown(tx: WriteTx, memory: ContextMemory, requested: ContextRecord, nowMs: number) {
  const { owner, requestId, externalId, digest } = requested;
  const earlierRecord = await findContextOfRequest(tx, memory, owner, requestId);
  const byRequest = earlierRecord?.digest === "" ? await orGivesWay(tx, earlierRecord, nowMs) : earlierRecord;
  // A revoked context whose data was only in memory has no digest, so this function cannot compare the requests.
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
      const { agent } = await tasks.dependencies.agents.getAgent({ agentId: id, viewer }, options);
      if (agent?.status !== AgentStatus.ACTIVE) {
        throw new DeputeError(
          ErrorReason.AGENT_NOT_FOUND,
          "the agent does not exist, or the caller may not see it",
          { metadata: { agent: id } },
        );
      }
      return { agentId: id, principal: agent.principal };
    }),
  );
}
