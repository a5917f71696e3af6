import { create, fromJson, type JsonValue } from "@bufbuild/protobuf";
import { type Value, ValueSchema } from "@bufbuild/protobuf/wkt";
import { type SharedContext, SharedContextSchema } from "@depute/contracts/depute/tasks/v1/context_pb";
import {
  type ShareContextRequest,
  ShareContextRequestSchema,
} from "@depute/contracts/depute/tasks/v1/context_service_pb";
import type { Task } from "@depute/contracts/depute/tasks/v1/task_pb";
import { type ContextEnvelope, ContextEnvelopeSchema } from "@depute/contracts/nekte/v1/nekte_pb";
import { DeputeError, ErrorReason, invalid, newId, parseStrictJson, toTimestamp } from "@depute/core";
import { messageDigest } from "@depute/service";
import type { ReadTx, WriteTx } from "@depute/store";
import {
  type ContextRecord,
  contextNotFound,
  endOf,
  MAX_CONTEXT_MS,
  mayRead,
  type Reader,
  requireDerivation,
  ttlMsOf,
} from "../rules/context.ts";
import { checkValue, MAX_VALUE_BYTES } from "../rules/values.ts";
import type { Viewer } from "../rules/visibility.ts";
import {
  findContext,
  freeContextIds,
  type HeldData,
  insertContext,
  readContext,
  readDerived,
  readTaskContexts,
  revokeContext,
} from "../store/context-rows.ts";
import { type ContextMemory, type Held, MissingData } from "./context-memory.ts";

/** The ways in which a request can name a context. */
export type ContextName =
  | { case: "contextId"; value: string }
  | { case: "externalId"; value: string }
  | { case: undefined; value?: undefined };

/**
 * Finds a context, and its data in the store or in memory; undefined if there is none. An external id is one of
 * `owner`.
 */
export async function lookUp(
  tx: ReadTx,
  memory: HeldData,
  owner: string,
  name: ContextName,
): Promise<ContextRecord | undefined> {
  if (name.case === "externalId") return findContext(tx, memory, owner, name.value);
  return readContext(tx, memory, name.value ?? "");
}

/**
 * Returns the ids of the contexts from which a context's data is derived. `derivedFrom` names each of them by its id,
 * or by the owner's external id.
 *
 * @throws DeputeError CONTEXT_NOT_FOUND, CONTEXT_EXPIRED, CONTEXT_PERMISSION_DENIED, INVALID_REQUEST,
 * DEPENDENCY_UNAVAILABLE
 */
export async function sourcesOf(
  tx: ReadTx,
  memory: ContextMemory,
  record: ContextRecord,
  maker: { readonly principal: string; readonly viewer: Viewer },
  nowMs: number,
): Promise<string[]> {
  const ids: string[] = [];
  const missingData = new MissingData();
  for (const name of record.derivedFrom) {
    const read = async () =>
      (await readContext(tx, memory, name)) ?? (await findContext(tx, memory, maker.principal, name));
    const found = await missingData.orMissing(async () => ({ source: await read() }));
    if (found === undefined) continue;
    const { source } = found;
    if (source === undefined) throw contextNotFound(name);
    requireDerivation(maker.viewer, source, record.envelope, record.expireMs, nowMs);
    ids.push(source.id);
  }
  missingData.requireNone();
  return ids;
}

/**
 * Returns a source of contexts' data for a revocation. While the memory does not answer, every context counts as having
 * data. So the owner of a context can always revoke it.
 */
export function orPresumed(memory: ContextMemory): HeldData {
  return { find: (id) => (memory.isAway ? PRESUMED : memory.find(id)) };
}

const PRESUMED: Held = { data: new Uint8Array(), digest: "" };

/**
 * Revokes a context and all contexts derived from it, directly or through other contexts. Deletes the data of these
 * contexts, so tasks that carry them lose this data.
 */
export async function revokeWithDerived(
  tx: WriteTx,
  memory: ContextMemory,
  first: ContextRecord,
): Promise<void> {
  const seenIds = new Set([first.id]);
  const queue = [first];
  for (let record = queue.pop(); record !== undefined; record = queue.pop()) {
    const { id, isRevoked } = record;
    if (!isRevoked) await revokeContext(tx, record);
    tx.afterCommit(() => memory.remove(id));
    for (const derived of await readDerived(tx, orPresumed(memory), id)) {
      if (!seenIds.has(derived.id)) queue.push(derived);
      seenIds.add(derived.id);
    }
  }
}

/** The contexts of a task: the contexts that a worker can read, and the ids of the contexts that no worker can read. */
export interface Carried {
  readonly contexts: SharedContext[];
  /** Ids of the contexts that can no longer be read: expired, revoked or lost. */
  readonly missingContextIds: string[];
}

/**
 * Reads the contexts that a task carries. Puts the ids of expired, revoked and lost contexts into `missingContextIds`.
 */
export async function carriedContexts(
  tx: ReadTx,
  memory: ContextMemory,
  taskId: string,
  nowMs: number,
): Promise<Carried> {
  const contexts: SharedContext[] = [];
  const missingContextIds: string[] = [];
  const missingData = new MissingData();
  for (const id of await readTaskContexts(tx, taskId)) {
    const record = await missingData.orMissing(() => readContext(tx, memory, id));
    if (record === undefined || endOf(record, nowMs) !== undefined) missingContextIds.push(id);
    else contexts.push(toSharedContext(record, "with its data"));
  }
  missingData.requireNone();
  return { contexts, missingContextIds };
}

/**
 * Returns the input of a task that takes its input from a context. Returns undefined after the context has ended.
 * Returns undefined also to a viewer that may not read the context, unless the context allows forwarding.
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

/**
 * Parses the data of an envelope. Before an envelope is stored, {@link checkEnvelope} requires that its data is JSON.
 */
export function dataOf({ data }: { readonly data: Uint8Array }): Value {
  return fromJson(ValueSchema, JSON.parse(new TextDecoder().decode(data)) as JsonValue);
}

/** Converts a context to its contract message, with or without its data. */
export function toSharedContext(record: ContextRecord, data: "with its data" | "without"): SharedContext {
  const { id, externalId, owner, organization, envelope, readers, createMs, expireMs } = record;
  return create(SharedContextSchema, {
    id,
    externalId,
    owner,
    organization,
    envelope: data === "without" ? { ...envelope, data: new Uint8Array() } : envelope,
    readerAgentIds: readers.map(({ agentId }) => agentId),
    createTime: toTimestamp(createMs),
    expireTime: toTimestamp(expireMs),
  });
}

/**
 * Checks that an envelope has a permitted time to live, and that its data is JSON within a worker's limits.
 *
 * @param field the place of the envelope in the request
 * @throws DeputeError INVALID_REQUEST, LIMIT_EXCEEDED
 */
export function checkEnvelope(envelope: ContextEnvelope, field: string): void {
  let value: Value;
  try {
    const text = new TextDecoder("utf-8", { fatal: true }).decode(envelope.data);
    value = fromJson(ValueSchema, parseStrictJson(text) as JsonValue);
  } catch (error) {
    throw invalid(`${field}.data`, `is not JSON: ${(error as Error).message.slice(0, 200)}`);
  }
  checkValue(value, `${field}.data`, MAX_VALUE_BYTES);
  if (ttlMsOf(envelope) > MAX_CONTEXT_MS) throw invalid(`${field}.ttl_s`, "must be at most 30 days");
}

/**
 * Returns a context whose time to live begins now.
 *
 * @param request the request that shares the context; without a request id if the context comes with a task
 * @param id the context's id; absent for a new id. A repeated transaction passes the same id.
 */
export function newContext(
  request: ShareContextRequest,
  { owner, organization }: Pick<ContextRecord, "owner" | "organization">,
  readers: readonly Reader[],
  nowMs: number,
  id: string = newId(nowMs),
): ContextRecord {
  const envelope = request.envelope ?? create(ContextEnvelopeSchema);
  return {
    id,
    externalId: envelope.id ?? "",
    owner,
    organization,
    // A request id identifies one context of an owner. Without a request id, the unique id of the context takes its
    // place.
    requestId: request.requestId || id,
    digest: messageDigest(ShareContextRequestSchema, { ...request, requestId: "" }),
    // Readers do not learn the sources of a context.
    envelope: { ...envelope, derivedFrom: [] },
    readers,
    derivedFrom: [...new Set([...request.derivedFrom, ...envelope.derivedFrom])],
    createMs: nowMs,
    expireMs: nowMs + ttlMsOf(envelope),
    isRevoked: false,
    dataIn: envelope.permissions?.persist === true ? "store" : "memory",
  };
}

/** Returns the error for a context id that its owner already uses for another context. */
export function contextIdTaken(context: string): DeputeError {
  return new DeputeError(
    ErrorReason.CONTEXT_ID_TAKEN,
    "another context of the owner has this id: choose another id",
    {
      metadata: { context },
    },
  );
}

/**
 * Inserts the rows of contexts. Adds to the memory the data of contexts that may not be persisted. Call this function
 * last in a transaction: contexts in memory do not roll back.
 *
 * @throws DeputeError the errors of {@link ContextMemory.add}
 */
export async function keepContexts(
  tx: WriteTx,
  memory: ContextMemory,
  records: readonly ContextRecord[],
): Promise<void> {
  for (const record of records) await insertContext(tx, record);
  const memoryRecords = records.filter(({ dataIn }) => dataIn === "memory");
  if (memoryRecords.length > 0) memory.add(memoryRecords);
}

/**
 * Returns `there` if the context is live or revoked; undefined if it has expired or is lost. An expired or lost context
 * releases its external id and request id for a new context. A revoked context keeps its ids, so that a repeated call
 * does not restore the context.
 */
export async function orGivesWay(
  tx: WriteTx,
  there: ContextRecord | undefined,
  nowMs: number,
): Promise<ContextRecord | undefined> {
  if (there === undefined) return undefined;
  const end = endOf(there, nowMs);
  if (end === undefined || end === "revoked") return there;
  await freeContextIds(tx, there);
  return undefined;
}
