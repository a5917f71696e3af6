import type { Task } from "@depute/contracts/depute/tasks/v1/task_pb";
import type { TaskDraft } from "@depute/contracts/depute/tasks/v1/task_service_pb";
import { DeputeError, ErrorReason, newId, requestIdReused } from "@depute/core";
import type { ReadTx, WriteTx } from "@depute/store";
import { bringsTheSame, firstExpiry, packContexts, sendContexts } from "../contexts/carry-contexts.ts";
import type { ContextMemory } from "../contexts/context-memory.ts";
import type { Engine } from "../engine/engine.ts";
import { openSpend } from "../engine/spend.ts";
import type { AssignmentStream } from "../queue/assignment-stream.ts";
import { assignment, assignmentOf, given } from "../queue/claim.ts";
import type { Dispatcher } from "../queue/dispatcher.ts";
import type { Advance } from "../rules/advance.ts";
import { cancelIfOpen } from "../rules/cancel.ts";
import { type IdPolicies, idOutcome } from "../rules/id-policy.ts";
import { type Above, type Admission, newTask } from "../rules/new-task.ts";
import { placeUnder, type TreeLimits } from "../rules/tree.ts";
import { isDelegate, isDelegator, taskNotFound, type Viewer } from "../rules/visibility.ts";
import { insertBlocks } from "../store/block-rows.ts";
import { insertDelegation } from "../store/delegation-rows.ts";
import { insertEvents } from "../store/event-rows.ts";
import { insertInput, insertOutputSchema } from "../store/input-rows.ts";
import { findRequest, insertRequest } from "../store/request-rows.ts";
import { findAllByExternalId, findByExternalId, freeExternalId, insertTask } from "../store/task-rows.ts";
import { countChildren, countOpenInTree, readLineage } from "../store/tree-rows.ts";

/** A call that hands over work. */
export interface CreateRequest {
  readonly delegator: string;
  readonly requestId: string;
  readonly draft: TaskDraft;
  /** Digest of the draft. */
  readonly digest: string;
  readonly policies: IdPolicies;
}

/** What admission found, and what goes with the task to the store. */
export interface Admitted {
  readonly admission: Admission;
  /** The schema that `admission.outputSchema` names, JSON in UTF-8. */
  readonly outputSchema: Uint8Array | undefined;
  /** The revocation ids of the worker token's blocks, the authority's first. */
  readonly blocks: readonly string[];
}

/** A task that was created now, or the one that was there. */
export interface Created {
  readonly taskId: string;
  readonly isNew: boolean;
  /** The whole task, where it was created now. */
  readonly task?: Task;
}

/** What is there already of what a request asks for. */
type Known =
  | { readonly taskId: string; readonly replace: false }
  /** A task whose external id goes to a new one. */
  | { readonly taskId: string; readonly replace: true };

/**
 * The task that this request, or one with the same external id, delegate and draft, created before.
 *
 * @throws DeputeError REQUEST_ID_REUSED, TASK_ID_TAKEN when it asked for something else
 */
export async function findCreated(
  tx: ReadTx,
  request: CreateRequest,
  memory: ContextMemory,
): Promise<string | undefined> {
  // Whose capability it was is not known where none is found now.
  const known = await findKnown(tx, request, request.draft.agentId, memory);
  return known?.replace === false ? known.taskId : undefined;
}

async function findKnown(
  tx: ReadTx,
  request: CreateRequest,
  agentId: string,
  memory: ContextMemory,
): Promise<Known | undefined> {
  const { delegator, requestId, draft, digest, policies } = request;
  const isSame = async (task: { task_id: string; draft_digest: string }) =>
    task.draft_digest === digest && (await bringsTheSame(tx, memory, task.task_id, draft));
  const byRequest = await findRequest(tx, delegator, requestId);
  if (byRequest !== undefined) {
    if (await isSame(byRequest)) return { taskId: byRequest.task_id, replace: false };
    throw requestIdReused(requestId, "draft");
  }
  if (draft.externalId === "") return undefined;
  const holder =
    agentId === ""
      ? (await findAllByExternalId(tx, delegator, draft.externalId, 1))[0]
      : await findByExternalId(tx, delegator, draft.externalId, agentId);
  if (holder === undefined) return undefined;
  const outcome = idOutcome(holder.status, await isSame(holder), policies);
  if (outcome !== "refuse") return { taskId: holder.task_id, replace: outcome === "replace" };
  throw new DeputeError(ErrorReason.TASK_ID_TAKEN, "the external id is that of another task", {
    metadata: { external_id: draft.externalId },
  });
}

/** Who hands over work, and how large a tree of it may grow. */
export interface CreateRights {
  readonly caller: Viewer;
  readonly treeLimits: TreeLimits;
  readonly contextMemory: ContextMemory;
  /** Where a worker may get the task at once; absent for one that has to wait for something first. */
  readonly dispatcher?: Dispatcher;
}

/**
 * Stores a new task with its first event; a request that was answered before gets the task that is there.
 *
 * @throws DeputeError as {@link findCreated}; for a part of another task TASK_NOT_FOUND, TASK_STATE_CONFLICT, TASK_CYCLE,
 * LIMIT_EXCEEDED, BUDGET_EXCEEDED
 */
export async function createTask(
  engine: Engine,
  request: CreateRequest,
  admitted: Admitted,
  rights: CreateRights,
): Promise<Created> {
  // Contexts may be kept in memory, which is not rolled back.
  const isRepeatable = !carriesContexts(request.draft);
  const fn = (tx: WriteTx) => createTaskWithin(tx, engine, request, admitted, rights);
  return engine.store.write(fn, { isRepeatable });
}

/** As {@link createTask}, within a transaction. */
export async function createTaskWithin(
  tx: WriteTx,
  engine: Engine,
  request: CreateRequest,
  admitted: Admitted,
  rights: CreateRights,
): Promise<Created> {
  const { delegator, requestId, draft, digest } = request;
  const { agentId, agentPrincipal, capabilityId } = admitted.admission;
  const known = await findKnown(tx, request, agentId, rights.contextMemory);
  if (known?.replace === false) {
    const { taskId } = known;
    if ((await findRequest(tx, delegator, requestId)) === undefined) {
      await insertRequest(tx, { delegator, requestId, draftDigest: digest, taskId });
    }
    return { taskId, isNew: false };
  }
  if (known !== undefined) await giveWay(engine, tx, known.taskId);
  const taskId = newId();
  const above = await placeOf(engine, tx, taskId, draft, admitted.admission, rights);
  const nowMs = engine.clock.now();
  const to = { taskId, delegator, capabilityId, reader: { agentId, principal: agentPrincipal } };
  const packed = await packContexts(tx, rights.contextMemory, draft, to, rights.caller, nowMs);
  const inputId = draft.inputFromContext ? (packed.all[0]?.id ?? "") : "";
  const carried = { inputId, expireMs: firstExpiry(packed) };
  const made = newTask(taskId, draft, admitted.admission, nowMs, above, carried);
  const stream = rights.dispatcher?.match(agentId, capabilityId);
  const { record, events } = stream === undefined ? made : taken(made, stream, nowMs);
  await insertTask(tx, record, { draftDigest: digest, createMs: nowMs });
  engine.noteWritten(tx, record);
  await insertEvents(tx, events);
  const { input, workerToken } = draft;
  await insertInput(tx, taskId, { input, workerToken });
  await insertRequest(tx, { delegator, requestId, draftDigest: digest, taskId });
  await insertBlocks(tx, taskId, admitted.blocks);
  const { delegationId } = admitted.admission;
  if (delegationId !== "") await insertDelegation(tx, taskId, delegationId, admitted.blocks.at(-1) ?? "");
  if (admitted.outputSchema !== undefined) {
    await insertOutputSchema(tx, admitted.admission.outputSchema, admitted.outputSchema);
  }
  if (packed.all.length > 0) await sendContexts(tx, rights.contextMemory, packed, to);
  await engine.tell(tx, { before: undefined, after: record, events });
  engine.announce(tx, record);
  if (stream !== undefined) {
    const work = carriesContexts(draft)
      ? await assignmentOf(tx, record, rights.contextMemory, nowMs)
      : assignment(record, { input, workerToken });
    tx.afterCommit(() => stream.deliver([work]));
  }
  return { taskId, isNew: true, task: input === undefined ? record.task : { ...record.task, input } };
}

function carriesContexts({ contextIds, contexts }: TaskDraft): boolean {
  return contextIds.length + contexts.length > 0;
}

/** A new task that goes to a worker at once. */
function taken(made: Advance, { worker }: AssignmentStream, nowMs: number): Advance {
  const { record, events } = given(made.record, worker, nowMs);
  return { record, events: [...made.events, ...events] };
}

/** Ends the task that has the external id, if it has not ended, and takes the id away from it. */
async function giveWay(engine: Engine, tx: WriteTx, taskId: string): Promise<void> {
  await engine.changeWithin(tx, taskId, (before, nowMs) =>
    cancelIfOpen(before, "another task was created in its place", nowMs),
  );
  await freeExternalId(tx, taskId);
}

/** Where a new task stands, and what it may use up; undefined for one that stands for itself without a bound. */
async function placeOf(
  engine: Engine,
  tx: WriteTx,
  taskId: string,
  draft: TaskDraft,
  { agentId, capabilityId }: Admission,
  { caller, treeLimits }: CreateRights,
): Promise<Above | undefined> {
  const { parentTaskId, description, spend: asked } = draft;
  if (parentTaskId === "") {
    await openSpend(tx, taskId, asked, "");
    return undefined;
  }
  // The parent's time limits hold before anything is added to it.
  const parent = await engine.changeWithin(tx, parentTaskId, (record) => {
    if (!isDelegator(caller, record) && !isDelegate(caller, record)) throw taskNotFound(parentTaskId);
    return { record, events: [] };
  });
  const lineage = (await readLineage(tx, parent)).map(({ task }) => task);
  const state = {
    lineage: lineage as [Task, ...Task[]],
    children: await countChildren(tx, parentTaskId),
    open: await countOpenInTree(tx, parent.task.rootTaskId || parentTaskId),
  };
  const place = placeUnder(state, { agentId, capabilityId, description }, treeLimits);
  return { place, spend: await openSpend(tx, taskId, asked, parentTaskId) };
}
