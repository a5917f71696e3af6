import { create, equals } from "@bufbuild/protobuf";
import { ShareContextRequestSchema } from "@depute/contracts/depute/tasks/v1/context_service_pb";
import type { TaskDraft } from "@depute/contracts/depute/tasks/v1/task_service_pb";
import { ContextEnvelopeSchema } from "@depute/contracts/nekte/v1/nekte_pb";
import { DeputeError, ErrorReason } from "@depute/core";
import type { ReadTx, WriteTx } from "@depute/store";
import type { ContextMemory } from "./context-memory.ts";
import { lookUp } from "./contexts.ts";
import { checkEnvelope, contextIdTaken, keepContexts, newContext } from "./new-context.ts";
import {
  type ContextRecord,
  contextNotFound,
  MAX_CARRIED,
  MAX_CARRIED_BYTES,
  type Reader,
  requireForward,
  requireScope,
} from "./rules/context.ts";
import type { Viewer } from "./rules/visibility.ts";
import { insertReader, insertTaskContexts, readContext, readTaskContexts } from "./store/context-rows.ts";

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
export function checkContexts({ contextIds, contexts }: TaskDraft): void {
  if (contextIds.length + contexts.length > MAX_CARRIED) {
    throw tooMuch(`more than ${MAX_CARRIED} contexts`, "draft.contexts", MAX_CARRIED);
  }
  for (const [number, envelope] of contexts.entries()) checkEnvelope(envelope, `draft.contexts[${number}]`);
}

/**
 * Sends a draft's contexts along with its task, and lets the delegate read them. To be called last in a transaction: what
 * is held in memory is not rolled back.
 *
 * @throws DeputeError CONTEXT_NOT_FOUND, CONTEXT_EXPIRED, CONTEXT_PERMISSION_DENIED, CONTEXT_ID_TAKEN, LIMIT_EXCEEDED
 */
export async function carryContexts(
  tx: WriteTx,
  memory: ContextMemory,
  { contextIds, contexts }: TaskDraft,
  to: Carrier,
  viewer: Viewer,
  nowMs: number,
): Promise<void> {
  if (contextIds.length + contexts.length === 0) return;
  const shared: ContextRecord[] = [];
  for (const id of contextIds) {
    const record = memory.find(id) ?? (await readContext(tx, id));
    if (record === undefined) throw contextNotFound(id);
    shared.push(record);
  }
  const carried = shared.map(({ id }) => id);
  const own: ContextRecord[] = [];
  for (const envelope of contexts) {
    const request = create(ShareContextRequestSchema, { envelope });
    const record = newContext(request, to.delegator, [to.reader], nowMs);
    const there = await sharedBefore(tx, memory, record);
    if (there === undefined) own.push(record);
    else shared.push(there);
    carried.push((there ?? record).id);
  }
  for (const record of shared) requireForward(viewer, record, to.capabilityId, nowMs);
  for (const record of own) requireScope(record, to.capabilityId);
  const bytes = [...shared, ...own].reduce((sum, { envelope }) => sum + envelope.data.length, 0);
  if (bytes > MAX_CARRIED_BYTES) {
    throw tooMuch(`more than ${MAX_CARRIED_BYTES} bytes together`, "draft.context_ids", MAX_CARRIED_BYTES);
  }
  for (const { id } of shared) {
    if (memory.find(id) === undefined) await insertReader(tx, id, to.reader);
    else tx.afterCommit(() => memory.addReader(id, to.reader));
  }
  await insertTaskContexts(tx, to.taskId, carried);
  if (own.length > 0) await keepContexts(tx, memory, own, nowMs);
}

/** What its owner shared before under the same id of its own, with whomever. */
async function sharedBefore(
  tx: ReadTx,
  memory: ContextMemory,
  { owner, externalId, envelope }: ContextRecord,
) {
  if (externalId === "") return undefined;
  const there = await lookUp(tx, memory, owner, { case: "externalId", value: externalId });
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
    return held === undefined || held.isRevoked || Buffer.compare(held.envelope.data, data) === 0;
  });
}

function tooMuch(description: string, field: string, max: number): DeputeError {
  const limit = max === MAX_CARRIED ? field : `${field}.bytes`;
  return new DeputeError(ErrorReason.LIMIT_EXCEEDED, `${field}: ${description}`, {
    metadata: { limit, max: String(max) },
    violations: [{ field, description }],
  });
}
