import { create } from "@bufbuild/protobuf";
import { type SharedContext, SharedContextSchema } from "@depute/contracts/depute/tasks/v1/context_pb";
import { toTimestamp } from "@depute/core";
import type { ReadTx, WriteTx } from "@depute/store";
import type { ContextMemory } from "./context-memory.ts";
import type { ContextRecord } from "./rules/context.ts";
import {
  findContext,
  readContext,
  readDerived,
  readTaskContexts,
  revokeContext,
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
 * Takes a context back, and what was made of it, by whomever, and what was made of that: their data is gone wherever they
 * are read from next, tasks that carry them included.
 */
export async function revokeWithDerived(
  tx: WriteTx,
  memory: ContextMemory,
  first: ContextRecord,
): Promise<void> {
  const seen = new Set([first.id]);
  const left = [first];
  for (let record = left.pop(); record !== undefined; record = left.pop()) {
    const { id, isRevoked } = record;
    // What is held in memory is not rolled back, and need not be: this is asked for again.
    if (memory.find(id) !== undefined) memory.revoke(id);
    else if (!isRevoked) await revokeContext(tx, record);
    for (const derived of [...memory.derivedFrom(id), ...(await readDerived(tx, id))]) {
      if (!seen.has(derived.id)) left.push(derived);
      seen.add(derived.id);
    }
  }
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
