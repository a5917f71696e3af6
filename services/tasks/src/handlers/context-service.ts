import { create } from "@bufbuild/protobuf";
import type { HandlerContext, ServiceImpl } from "@connectrpc/connect";
import { AgentStatus } from "@depute/contracts/depute/registry/v1/agent_pb";
import {
  type ContextService,
  type ShareContextRequest,
  ShareContextRequestSchema,
} from "@depute/contracts/depute/tasks/v1/context_service_pb";
import { ContextEnvelopeSchema } from "@depute/contracts/nekte/v1/nekte_pb";
import { DeputeError, ErrorReason, invalid, newId } from "@depute/core";
import type { ReadTx } from "@depute/store";
import type { ContextMemory } from "../context-memory.ts";
import { type ContextName, lookUp, shown } from "../contexts.ts";
import { messageDigest } from "../digest.ts";
import {
  type ContextRecord,
  contextNotFound,
  isOwner,
  MAX_CONTEXT_MS,
  type Reader,
  requireDerivation,
  requireReader,
  requireScope,
} from "../rules/context.ts";
import { findContextOfRequest, forgetExpired, insertContext, revokeContext } from "../store/context-rows.ts";
import { type Caller, callerOf, callOptions, type TasksContext } from "./context.ts";

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
        if (memory.find(found.id) !== undefined) memory.revoke(found.id);
        else if (!found.isRevoked) await revokeContext(tx, found);
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
  const isKnown =
    record !== undefined &&
    (isOwner(caller, record) || record.readers.some(({ principal }) => caller.mayActFor(principal)));
  if (!isKnown) throw contextNotFound(name.value ?? "");
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
  const record = recordOf(
    request,
    caller.principal,
    await readersOf(tasks, request, caller.principal, context),
    nowMs,
  );
  return engine.store.write(async (tx) => {
    const known = await findKnown(tx, memory, record);
    if (known !== undefined) return known;
    for (const id of request.derivedFrom) {
      const source = await find(tx, memory, caller, { case: "id", value: id });
      requireDerivation(caller, source, record.envelope, record.expireMs, nowMs);
    }
    await forgetExpired(tx, nowMs);
    if (record.envelope.permissions?.persist === true) await insertContext(tx, record);
    // Nothing after this can fail, so that what is rolled back is not held.
    else memory.add(record);
    return record;
  });
}

function recordOf(
  request: ShareContextRequest,
  owner: string,
  readers: readonly Reader[],
  nowMs: number,
): ContextRecord {
  const envelope = request.envelope ?? create(ContextEnvelopeSchema);
  requireJson(envelope.data);
  if (envelope.ttlS * 1000 > MAX_CONTEXT_MS) throw invalid("envelope.ttl_s", "is more than 30 days");
  return {
    id: newId(),
    externalId: envelope.id ?? "",
    owner,
    requestId: request.requestId,
    digest: messageDigest(ShareContextRequestSchema, { ...request, requestId: "" }),
    envelope,
    readers,
    createMs: nowMs,
    expireMs: nowMs + envelope.ttlS * 1000,
    isRevoked: false,
  };
}

/** @throws DeputeError REQUEST_ID_REUSED, CONTEXT_ID_TAKEN */
async function findKnown(tx: ReadTx, memory: ContextMemory, asked: ContextRecord) {
  const { owner, requestId, externalId, digest } = asked;
  const byRequest =
    memory.search((held) => held.owner === owner && held.requestId === requestId) ??
    (await findContextOfRequest(tx, owner, requestId));
  if (byRequest !== undefined && byRequest.digest !== digest) {
    throw new DeputeError(ErrorReason.REQUEST_ID_REUSED, "the request id was used with another context", {
      metadata: { request_id: requestId },
    });
  }
  if (byRequest !== undefined || externalId === "") return byRequest;
  const byId = await lookUp(tx, memory, owner, { case: "externalId", value: externalId });
  if (byId === undefined || byId.digest === digest) return byId;
  throw new DeputeError(ErrorReason.CONTEXT_ID_TAKEN, "the id is that of another context", {
    metadata: { context: externalId },
  });
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

function requireJson(data: Uint8Array): void {
  try {
    JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(data));
  } catch {
    throw invalid("envelope.data", "is not JSON");
  }
}
