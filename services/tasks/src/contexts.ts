import { create } from "@bufbuild/protobuf";
import { type SharedContext, SharedContextSchema } from "@depute/contracts/depute/tasks/v1/context_pb";
import { toTimestamp } from "@depute/core";
import type { ReadTx } from "@depute/store";
import type { ContextMemory } from "./context-memory.ts";
import type { ContextRecord } from "./rules/context.ts";
import { findContext, readContext, readTaskContexts } from "./store/context-rows.ts";

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
