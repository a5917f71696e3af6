import { create, equals } from "@bufbuild/protobuf";
import type { Value } from "@bufbuild/protobuf/wkt";
import { ShareContextRequestSchema } from "@depute/contracts/depute/tasks/v1/context_service_pb";
import type { TaskDraft } from "@depute/contracts/depute/tasks/v1/task_service_pb";
import { ContextEnvelopeSchema } from "@depute/contracts/nekte/v1/nekte_pb";
import { DeputeError, ErrorReason, invalid } from "@depute/core";
import type { ReadTx, WriteTx } from "@depute/store";
import {
  type ContextRecord,
  contextNotFound,
  MAX_CARRIED,
  MAX_CARRIED_BYTES,
  type Reader,
  requireForward,
  requireReader,
  requireScope,
} from "../rules/context.ts";
import type { Viewer } from "../rules/visibility.ts";
import { insertReader, insertTaskContexts, readContext, readTaskContexts } from "../store/context-rows.ts";
import { type ContextMemory, MissingData } from "./context-memory.ts";
import {
  checkEnvelope,
  contextIdTaken,
  dataOf,
  keepContexts,
  lookUp,
  newContext,
  orGivesWay,
  sourcesOf,
  toSharedContext,
} from "./contexts.ts";

/** The facts about a new task that determine its contexts. */
export interface Carrier {
  readonly taskId: string;
  readonly delegator: string;
  /** The organization that owns the task and the contexts that its draft shares; empty for none. */
  readonly organization: string;
  /** Id of the task's capability; empty for work without a capability. */
  readonly capabilityId: string;
  /** The delegate of the task. It becomes a reader of the contexts. */
  readonly reader: Reader;
  /** The ids of the contexts that the draft shares, in the draft's order. `packContexts` makes missing ids. */
  readonly ownContextIds?: readonly string[];
}

/**
 * Checks the parts of a draft that concern contexts. Reads only the draft.
 *
 * @throws DeputeError INVALID_REQUEST, LIMIT_EXCEEDED
 */
export function checkContexts({ contextIds, contexts, inputFromContext, input }: TaskDraft): void {
  if (inputFromContext) {
    if (input !== undefined) throw invalid("draft.input", "must be absent if input_from_context is set");
    if (contextIds.length + contexts.length === 0) {
      throw invalid("draft.input_from_context", "requires a context: add one to contexts or context_ids");
    }
  }
  if (contextIds.length + contexts.length > MAX_CARRIED) {
    throw tooMuch(`more than ${MAX_CARRIED} contexts`, "draft.contexts", MAX_CARRIED);
  }
  for (const [number, envelope] of contexts.entries()) checkEnvelope(envelope, `draft.contexts[${number}]`);
}

/** The contexts of a draft, found or built before the task exists. */
export interface Packed {
  /** All contexts: first those that the draft names by id, then those that it shares. */
  readonly all: readonly ContextRecord[];
  /** The contexts that were shared before this draft. */
  readonly shared: readonly ContextRecord[];
  /** The contexts that the draft itself shares. */
  readonly ownRecords: readonly ContextRecord[];
}

/**
 * Returns the input of a draft: its field `input` or, if `inputFromContext` is set, the data of its first context.
 * (NEKTE 7)
 *
 * @throws DeputeError CONTEXT_NOT_FOUND, CONTEXT_EXPIRED, DEPENDENCY_UNAVAILABLE
 */
export async function inputOfDraft(
  tx: ReadTx,
  memory: ContextMemory,
  { contextIds: [id], contexts: [envelope], input, inputFromContext }: TaskDraft,
  viewer: Viewer,
  nowMs: number,
): Promise<Value | undefined> {
  if (!inputFromContext) return input;
  if (id === undefined) return envelope && dataOf(envelope);
  const record = await readContext(tx, memory, id);
  if (record === undefined) throw contextNotFound(id);
  requireReader(viewer, record, nowMs);
  return dataOf(record.envelope);
}

/**
 * Finds the contexts that a draft names, and builds the contexts that the draft shares. Stores nothing.
 *
 * @throws DeputeError CONTEXT_NOT_FOUND, CONTEXT_EXPIRED, CONTEXT_PERMISSION_DENIED, CONTEXT_ID_TAKEN, INVALID_REQUEST,
 * LIMIT_EXCEEDED, DEPENDENCY_UNAVAILABLE
 */
export async function packContexts(
  tx: WriteTx,
  memory: ContextMemory,
  { contextIds, contexts }: TaskDraft,
  to: Carrier,
  viewer: Viewer,
  nowMs: number,
): Promise<Packed> {
  const all: ContextRecord[] = [];
  const shared: ContextRecord[] = [];
  const missingData = new MissingData();
  for (const id of contextIds) {
    const found = await missingData.orMissing(async () => ({ record: await readContext(tx, memory, id) }));
    if (found === undefined) continue;
    if (found.record === undefined) throw contextNotFound(id);
    shared.push(found.record);
    all.push(found.record);
  }
  missingData.requireNone();
  const ownRecords: ContextRecord[] = [];
  for (const [number, envelope] of contexts.entries()) {
    const request = create(ShareContextRequestSchema, { envelope });
    const record = newContext(
      request,
      { owner: to.delegator, organization: to.organization },
      [to.reader],
      nowMs,
      to.ownContextIds?.[number],
    );
    const there = await sharedBefore(tx, memory, record, nowMs);
    if (there === undefined) {
      const maker = { principal: to.delegator, viewer };
      const derived = { ...record, derivedFrom: await sourcesOf(tx, memory, record, maker, nowMs) };
      ownRecords.push(derived);
      all.push(derived);
    } else {
      shared.push(there);
      all.push(there);
    }
  }
  for (const record of shared) requireForward(viewer, record, to.capabilityId, nowMs);
  for (const record of ownRecords) requireScope(record, to.capabilityId);
  const bytes = [...shared, ...ownRecords].reduce((sum, { envelope }) => sum + envelope.data.length, 0);
  if (bytes > MAX_CARRIED_BYTES) {
    throw tooMuch(`more than ${MAX_CARRIED_BYTES} bytes together`, "draft.context_ids", MAX_CARRIED_BYTES);
  }
  return { all, shared, ownRecords };
}

/**
 * Returns the contexts and the input of a new task for its worker. The function needs no read, because {@link
 * sendContexts} has just stored the same values.
 */
export function carriedNow({ input, inputFromContext }: TaskDraft, { all, shared }: Packed, reader: Reader) {
  const [first] = all;
  return {
    input: inputFromContext && first !== undefined ? dataOf(first.envelope) : input,
    contexts: all.map((record) =>
      toSharedContext(shared.includes(record) ? withReader(record, reader) : record, "with its data"),
    ),
    missingContextIds: [],
  };
}

function withReader(record: ContextRecord, reader: Reader): ContextRecord {
  const others = record.readers.filter(({ agentId }) => agentId !== reader.agentId);
  const readers = [...others, reader].sort((a, b) => (a.agentId < b.agentId ? -1 : 1));
  return { ...record, readers };
}

/** Returns the earliest expiry of a draft's contexts, in epoch milliseconds; undefined if the draft has no contexts. */
export function firstExpiry({ all }: Packed): number | undefined {
  return all.length === 0 ? undefined : Math.min(...all.map(({ expireMs }) => expireMs));
}

/**
 * Attaches a draft's contexts to its task, and makes the delegate their reader. Call this function last in a
 * transaction: contexts in memory do not roll back.
 *
 * @throws DeputeError the errors of {@link ContextMemory.add}
 */
export async function sendContexts(
  tx: WriteTx,
  memory: ContextMemory,
  { all, shared, ownRecords }: Packed,
  { taskId, reader }: Carrier,
): Promise<void> {
  for (const { id } of shared) await insertReader(tx, id, reader);
  await insertTaskContexts(
    tx,
    taskId,
    all.map(({ id }) => id),
  );
  if (ownRecords.length > 0) await keepContexts(tx, memory, ownRecords);
}

/**
 * Returns the live or revoked context that the same owner already shared under this record's external id; undefined for
 * none. An expired or lost context releases its external id.
 *
 * @throws DeputeError CONTEXT_ID_TAKEN if the live context has another envelope; DEPENDENCY_UNAVAILABLE
 */
async function sharedBefore(
  tx: WriteTx,
  memory: ContextMemory,
  { owner, externalId, envelope }: ContextRecord,
  nowMs: number,
) {
  if (externalId === "") return undefined;
  const source = await lookUp(tx, memory, owner, { case: "externalId", value: externalId });
  const there = await orGivesWay(tx, source, nowMs);
  if (there === undefined || there.isRevoked || equals(ContextEnvelopeSchema, there.envelope, envelope))
    return there;
  throw contextIdTaken(externalId);
}

/**
 * Returns whether the contexts that a task has in memory equal the contexts of a draft. The digest of a draft does not
 * cover contexts in memory, so this function compares their data. A context whose data is lost counts as equal.
 */
export async function bringsTheSame(
  tx: ReadTx,
  memory: ContextMemory,
  taskId: string,
  { contextIds, contexts }: TaskDraft,
): Promise<boolean> {
  if (contexts.every(({ permissions }) => permissions?.persist === true)) return true;
  const carried = await readTaskContexts(tx, taskId);
  return contexts.every(({ data }, number) => {
    const memoryRecord = memory.find(carried[contextIds.length + number] ?? "");
    return memoryRecord === undefined || Buffer.compare(memoryRecord.data, data) === 0;
  });
}

function tooMuch(description: string, field: string, max: number): DeputeError {
  const limit = max === MAX_CARRIED ? field : `${field}.bytes`;
  return new DeputeError(ErrorReason.LIMIT_EXCEEDED, `${field}: ${description}`, {
    metadata: { limit, max: String(max) },
    violations: [{ field, description }],
  });
}
