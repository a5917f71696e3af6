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
import type { ContextMemory } from "./context-memory.ts";
import { dataOf, lookUp, sourcesOf } from "./contexts.ts";
import { checkEnvelope, contextIdTaken, keepContexts, newContext, orGivesWay } from "./new-context.ts";

/** A new task, as contexts go along with it. */
export interface Carrier {
  readonly taskId: string;
  readonly delegator: string;
  /** Empty for free work. */
  readonly capabilityId: string;
  /** Its delegate. */
  readonly reader: Reader;
}

/**
 * Refuses the contexts of a draft for what stands in it.
 *
 * @throws DeputeError INVALID_REQUEST, LIMIT_EXCEEDED
 */
export function checkContexts({ contextIds, contexts, inputFromContext, input }: TaskDraft): void {
  if (inputFromContext) {
    if (input !== undefined) throw invalid("draft.input", "is given beside input_from_context");
    if (contextIds.length + contexts.length === 0) {
      throw invalid("draft.input_from_context", "needs a context: give one in contexts or context_ids");
    }
  }
  if (contextIds.length + contexts.length > MAX_CARRIED) {
    throw tooMuch(`more than ${MAX_CARRIED} contexts`, "draft.contexts", MAX_CARRIED);
  }
  for (const [number, envelope] of contexts.entries()) checkEnvelope(envelope, `draft.contexts[${number}]`);
}

/** The contexts of a draft, before its task is there. */
export interface Packed {
  /** In the order of the draft: those that it names first. */
  readonly all: readonly ContextRecord[];
  /** Those that were shared before. */
  readonly shared: readonly ContextRecord[];
  /** Those that the draft itself shares. */
  readonly own: readonly ContextRecord[];
}

/**
 * The data that a draft names as its input: the first of its contexts. (NEKTE 7)
 *
 * @throws DeputeError CONTEXT_NOT_FOUND, CONTEXT_EXPIRED
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
 * Finds the contexts of a draft and makes those that it brings, without storing anything.
 *
 * @throws DeputeError CONTEXT_NOT_FOUND, CONTEXT_EXPIRED, CONTEXT_PERMISSION_DENIED, CONTEXT_ID_TAKEN, LIMIT_EXCEEDED
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
  for (const id of contextIds) {
    const record = await readContext(tx, memory, id);
    if (record === undefined) throw contextNotFound(id);
    shared.push(record);
    all.push(record);
  }
  const own: ContextRecord[] = [];
  for (const envelope of contexts) {
    const request = create(ShareContextRequestSchema, { envelope });
    const record = newContext(request, to.delegator, [to.reader], nowMs);
    const there = await sharedBefore(tx, memory, record, nowMs);
    if (there === undefined) {
      const maker = { principal: to.delegator, viewer };
      const made = { ...record, derivedFrom: await sourcesOf(tx, memory, record, maker, nowMs) };
      own.push(made);
      all.push(made);
    } else {
      shared.push(there);
      all.push(there);
    }
  }
  for (const record of shared) requireForward(viewer, record, to.capabilityId, nowMs);
  for (const record of own) requireScope(record, to.capabilityId);
  const bytes = [...shared, ...own].reduce((sum, { envelope }) => sum + envelope.data.length, 0);
  if (bytes > MAX_CARRIED_BYTES) {
    throw tooMuch(`more than ${MAX_CARRIED_BYTES} bytes together`, "draft.context_ids", MAX_CARRIED_BYTES);
  }
  return { all, shared, own };
}

/** When the first of a draft's contexts expires, epoch milliseconds; undefined without contexts. */
export function firstExpiry({ all }: Packed): number | undefined {
  return all.length === 0 ? undefined : Math.min(...all.map(({ expireMs }) => expireMs));
}

/**
 * Sends a draft's contexts along with its task, and lets the delegate read them. To be called last in a transaction: what
 * is held in memory is not rolled back.
 *
 * @throws DeputeError LIMIT_EXCEEDED
 */
export async function sendContexts(
  tx: WriteTx,
  memory: ContextMemory,
  { all, shared, own }: Packed,
  { taskId, reader }: Carrier,
): Promise<void> {
  for (const { id } of shared) await insertReader(tx, id, reader);
  await insertTaskContexts(
    tx,
    taskId,
    all.map(({ id }) => id),
  );
  if (own.length > 0) await keepContexts(tx, memory, own);
}

/** What its owner shared before under the same id of its own, with whomever. */
async function sharedBefore(
  tx: WriteTx,
  memory: ContextMemory,
  { owner, externalId, envelope }: ContextRecord,
  nowMs: number,
) {
  if (externalId === "") return undefined;
  const found = await lookUp(tx, memory, owner, { case: "externalId", value: externalId });
  const there = await orGivesWay(tx, found, nowMs);
  if (there === undefined || there.isRevoked || equals(ContextEnvelopeSchema, there.envelope, envelope))
    return there;
  throw contextIdTaken(externalId);
}

/**
 * Whether what a task brought along in memory, as far as it is still there, is what a draft brings along. Of that nothing
 * is in the digests that drafts are otherwise told apart by.
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
    const held = memory.find(carried[contextIds.length + number] ?? "");
    return held === undefined || Buffer.compare(held.data, data) === 0;
  });
}

function tooMuch(description: string, field: string, max: number): DeputeError {
  const limit = max === MAX_CARRIED ? field : `${field}.bytes`;
  return new DeputeError(ErrorReason.LIMIT_EXCEEDED, `${field}: ${description}`, {
    metadata: { limit, max: String(max) },
    violations: [{ field, description }],
  });
}
