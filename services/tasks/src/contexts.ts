import { create } from "@bufbuild/protobuf";
import { type SharedContext, SharedContextSchema } from "@depute/contracts/depute/tasks/v1/context_pb";
import { DeputeError, ErrorReason, toTimestamp } from "@depute/core";
import type { ReadTx, WriteTx } from "@depute/store";
import type { ContextMemory } from "./context-memory.ts";
import {
  type ContextRecord,
  contextNotFound,
  MAX_CARRIED_BYTES,
  type Reader,
  requireForward,
} from "./rules/context.ts";
import type { Viewer } from "./rules/visibility.ts";
import {
  findContext,
  insertReader,
  insertTaskContexts,
  readContext,
  readTaskContexts,
} from "./store/context-rows.ts";

/** How a context is named. */
export type ContextName =
  | { case: "id"; value: string }
  | { case: "externalId"; value: string }
  | { case: undefined; value?: undefined };

/** A context, wherever it is kept. */
export async function lookUp(
  tx: ReadTx,
  memory: ContextMemory,
  owner: string,
  name: ContextName,
): Promise<ContextRecord | undefined> {
  if (name.case === "externalId") {
    const own = (record: ContextRecord) => record.owner === owner && record.externalId === name.value;
    return memory.search(own) ?? (await findContext(tx, owner, name.value));
  }
  const id = name.value ?? "";
  return memory.find(id) ?? (await readContext(tx, id));
}

/**
 * Sends contexts along with a new task, and lets its delegate read them.
 *
 * @throws DeputeError CONTEXT_NOT_FOUND, CONTEXT_EXPIRED, CONTEXT_PERMISSION_DENIED, LIMIT_EXCEEDED
 */
export async function carryContexts(
  tx: WriteTx,
  memory: ContextMemory,
  ids: readonly string[],
  to: { taskId: string; capabilityId: string; reader: Reader },
  viewer: Viewer,
  nowMs: number,
): Promise<void> {
  let bytes = 0;
  for (const id of ids) {
    const record = memory.find(id) ?? (await readContext(tx, id));
    if (record === undefined) throw contextNotFound(id);
    requireForward(viewer, record, to.capabilityId, nowMs);
    bytes += record.envelope.data.length;
    if (bytes > MAX_CARRIED_BYTES) throw tooMuch();
    if (memory.find(id) === undefined) await insertReader(tx, id, to.reader);
    else tx.afterCommit(() => memory.addReader(id, to.reader));
  }
  await insertTaskContexts(tx, to.taskId, ids);
}

/** The contexts that go along with a task, as far as they can still be read. */
export async function carriedContexts(
  tx: ReadTx,
  memory: ContextMemory,
  taskId: string,
  nowMs: number,
): Promise<{ contexts: SharedContext[]; missingContextIds: string[] }> {
  const contexts: SharedContext[] = [];
  const missingContextIds: string[] = [];
  for (const id of await readTaskContexts(tx, taskId)) {
    const record = memory.find(id) ?? (await readContext(tx, id));
    if (record === undefined || record.isRevoked || record.expireMs <= nowMs) missingContextIds.push(id);
    else contexts.push(shown(record, "with its data"));
  }
  return { contexts, missingContextIds };
}

/** A context as it is told. */
export function shown(record: ContextRecord, data: "with its data" | "without"): SharedContext {
  const { id, externalId, owner, envelope, readers, createMs, expireMs } = record;
  return create(SharedContextSchema, {
    id,
    externalId,
    owner,
    envelope: data === "without" ? { ...envelope, data: new Uint8Array() } : envelope,
    readerAgentIds: readers.map(({ agentId }) => agentId),
    createTime: toTimestamp(createMs),
    expireTime: toTimestamp(expireMs),
  });
}

function tooMuch(): DeputeError {
  const description = `more than ${MAX_CARRIED_BYTES} bytes together`;
  return new DeputeError(ErrorReason.LIMIT_EXCEEDED, `draft.context_ids: ${description}`, {
    metadata: { limit: "draft.context_ids.bytes", max: String(MAX_CARRIED_BYTES) },
    violations: [{ field: "draft.context_ids", description }],
  });
}
