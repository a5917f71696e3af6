import { create, fromJson, type JsonValue } from "@bufbuild/protobuf";
import { type Value, ValueSchema } from "@bufbuild/protobuf/wkt";
import { type SharedContext, SharedContextSchema } from "@depute/contracts/depute/tasks/v1/context_pb";
import type { Task } from "@depute/contracts/depute/tasks/v1/task_pb";
import { toTimestamp } from "@depute/core";
import type { ReadTx, WriteTx } from "@depute/store";
import { type ContextRecord, contextNotFound, endOf, mayRead, requireDerivation } from "../rules/context.ts";
import type { Viewer } from "../rules/visibility.ts";
import {
  findContext,
  readContext,
  readDerived,
  readTaskContexts,
  revokeContext,
} from "../store/context-rows.ts";
import type { ContextMemory } from "./context-memory.ts";

/** How a context is named. */
export type ContextName =
  | { case: "id"; value: string }
  | { case: "externalId"; value: string }
  | { case: undefined; value?: undefined };

/** A context, wherever its data is kept. */
export async function lookUp(
  tx: ReadTx,
  memory: ContextMemory,
  owner: string,
  name: ContextName,
): Promise<ContextRecord | undefined> {
  if (name.case === "externalId") return findContext(tx, memory, owner, name.value);
  return readContext(tx, memory, name.value ?? "");
}

/**
 * The contexts that data is made of, as its maker names them: by id, or by its own id for one that it shared.
 *
 * @throws DeputeError CONTEXT_NOT_FOUND, CONTEXT_EXPIRED, CONTEXT_PERMISSION_DENIED, INVALID_REQUEST
 */
export async function sourcesOf(
  tx: ReadTx,
  memory: ContextMemory,
  record: ContextRecord,
  maker: { readonly principal: string; readonly viewer: Viewer },
  nowMs: number,
): Promise<string[]> {
  const ids: string[] = [];
  for (const name of record.derivedFrom) {
    const source =
      (await readContext(tx, memory, name)) ?? (await findContext(tx, memory, maker.principal, name));
    if (source === undefined) throw contextNotFound(name);
    requireDerivation(maker.viewer, source, record.envelope, record.expireMs, nowMs);
    ids.push(source.id);
  }
  return ids;
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
    if (!isRevoked) await revokeContext(tx, record);
    tx.afterCommit(() => memory.remove(id));
    for (const derived of await readDerived(tx, memory, id)) {
      if (!seen.has(derived.id)) left.push(derived);
      seen.add(derived.id);
    }
  }
}

/** The contexts that a task carries. */
export interface Carried {
  readonly contexts: SharedContext[];
  /** Ids of those that can be read no more. */
  readonly missingContextIds: string[];
}

/** The contexts that go along with a task, as far as they can still be read. */
export async function carriedContexts(
  tx: ReadTx,
  memory: ContextMemory,
  taskId: string,
  nowMs: number,
): Promise<Carried> {
  const contexts: SharedContext[] = [];
  const missingContextIds: string[] = [];
  for (const id of await readTaskContexts(tx, taskId)) {
    const record = await readContext(tx, memory, id);
    if (record === undefined || endOf(record, nowMs) !== undefined) missingContextIds.push(id);
    else contexts.push(shown(record, "with its data"));
  }
  return { contexts, missingContextIds };
}

/**
 * The input of a task that is the data of a context, for those who may read the context or to whom it may be forwarded;
 * undefined for everybody else, and once the context is over.
 */
export async function inputFromContext(
  tx: ReadTx,
  memory: ContextMemory,
  { inputContextId: id }: Task,
  viewer: Viewer,
  nowMs: number,
): Promise<Value | undefined> {
  const record = id === "" ? undefined : await readContext(tx, memory, id);
  if (record === undefined || endOf(record, nowMs) !== undefined) return undefined;
  const mayBeShown = mayRead(viewer, record) || record.envelope.permissions?.forward === true;
  return mayBeShown ? dataOf(record.envelope) : undefined;
}

/** The data of an envelope, which was found to be JSON when it was shared. */
export function dataOf({ data }: { readonly data: Uint8Array }): Value {
  return fromJson(ValueSchema, JSON.parse(new TextDecoder().decode(data)) as JsonValue);
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
