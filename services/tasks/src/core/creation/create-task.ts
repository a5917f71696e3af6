import type { TaskEvent } from "@depute/contracts/depute/tasks/v1/task_event_pb";
import type { Task } from "@depute/contracts/depute/tasks/v1/task_pb";
import { type TaskDraft, TaskDraftSchema } from "@depute/contracts/depute/tasks/v1/task_service_pb";
import { DeputeError, ErrorReason, newId, owningOrganization, requestIdReused } from "@depute/core";
import { messageDigest } from "@depute/service";
import type { ReadTx, WriteTx } from "@depute/store";
import {
  bringsTheSame,
  carriedNow,
  firstExpiry,
  packContexts,
  sendContexts,
} from "../contexts/carry-contexts.ts";
import type { ContextMemory } from "../contexts/context-memory.ts";
import type { Engine } from "../engine/engine.ts";
import { openSpend } from "../engine/spend.ts";
import type { AssignmentStream } from "../queue/assignment-stream.ts";
import { assignment, dispatched, messageOf } from "../queue/claim.ts";
import type { Dispatcher } from "../queue/dispatcher.ts";
import type { Advance } from "../rules/advance.ts";
import { cancelIfOpen } from "../rules/cancel.ts";
import { type IdPolicies, idOutcome } from "../rules/id-policy.ts";
import { type Above, type Admission, newTask } from "../rules/new-task.ts";
import { fullOwner } from "../rules/open-tasks.ts";
import { placeUnder, type TreeLimits } from "../rules/tree.ts";
import { isDelegate, isDelegator, taskNotFound, type Viewer } from "../rules/visibility.ts";
import { insertBlocks, insertDelegation } from "../store/delegation-rows.ts";
import { addOpenTask } from "../store/open-task-rows.ts";
import { findRequest, insertRequest } from "../store/request-rows.ts";
import {
  findAllByExternalId,
  findByExternalId,
  freeExternalId,
  insertEvents,
  insertInput,
  insertOutputSchema,
  insertTask,
} from "../store/task-rows.ts";
import { countChildren, countOpenInTree, readLineage } from "../store/tree-rows.ts";

/** A call that creates a task. */
export interface CreateRequest {
  readonly delegator: string;
  readonly requestId: string;
  readonly draft: TaskDraft;
  /** Digest of the draft. */
  readonly digest: string;
  readonly policies: IdPolicies;
  /** The ids of the contexts that the draft shares. A repeated transaction uses the same ids. */
  readonly ownContextIds?: readonly string[];
}

/** The result of admission, and the values that the store adds to the new task. */
export interface Admitted {
  readonly admission: Admission;
  /** The schema that `admission.outputSchema` names, JSON in UTF-8. */
  readonly outputSchema: Uint8Array | undefined;
  /** The revocation ids of the worker token's blocks, the authority block's id first. */
  readonly blocks: readonly string[];
}

/** The new task, or the existing task that the request id or the external id identifies. */
export interface Created {
  readonly taskId: string;
  readonly isNew: boolean;
  /** The whole task, if this call created it. */
  readonly task?: Task;
  /** The task's events, if this call created it. */
  readonly events?: readonly TaskEvent[];
}

/** The task that an earlier call created for this request id or external id. */
type Known =
  | {
      readonly taskId: string;
      readonly replace: false;
      /** True if the request id identifies the task; false if the external id does. */
      readonly byRequest: boolean;
    }
  /** An earlier task whose external id the new task takes over. */
  | { readonly taskId: string; readonly replace: true };

/**
 * Finds the task that an earlier call created, either by this request id or by this external id and delegate.
 *
 * @returns the task's id; undefined for none, or if the new task replaces that task
 * @throws DeputeError REQUEST_ID_REUSED if the earlier call had another draft; TASK_ID_TAKEN if the policies refuse the
 * external id
 */
export async function findCreated(
  tx: ReadTx,
  request: CreateRequest,
  memory: ContextMemory,
): Promise<string | undefined> {
  // The search may run before the capability is resolved. It then uses the draft's agent id; an empty one stands for
  // any agent.
  const existing = await findKnown(tx, request, request.draft.agentId, memory);
  return existing?.replace === false ? existing.taskId : undefined;
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
    if (await isSame(byRequest)) return { taskId: byRequest.task_id, replace: false, byRequest: true };
    throw requestIdReused(requestId, "draft");
  }
  if (draft.externalId === "") return undefined;
  const holder =
    agentId === ""
      ? (await findAllByExternalId(tx, delegator, draft.externalId, 1))[0]
      : await findByExternalId(tx, delegator, draft.externalId, agentId);
  if (holder === undefined) return undefined;
  const outcome = idOutcome(holder.status, await isSame(holder), policies);
  if (outcome === "replace") return { taskId: holder.task_id, replace: true };
  if (outcome !== "refuse") return { taskId: holder.task_id, replace: false, byRequest: false };
  throw new DeputeError(
    ErrorReason.TASK_ID_TAKEN,
    "another task has this external id: choose another external id",
    {
      metadata: { external_id: draft.externalId },
    },
  );
}

/** The caller of one creation, and the limits and parts of the service that the creation uses. */
export interface CreateRights {
  readonly caller: Viewer;
  /** The organization that owns a task without a parent; empty for none. */
  readonly organization: string;
  readonly treeLimits: TreeLimits;
  readonly contextMemory: ContextMemory;
  /** The dispatcher that gives the new task to a worker at once. Absent for a task that must stay pending at first. */
  readonly dispatcher?: Dispatcher;
}

/**
 * Stores a new task with its first event. If the request id or the external id identifies an existing task, returns
 * that task instead.
 *
 * @throws DeputeError the errors of {@link findCreated}, {@link packContexts} and {@link sendContexts}; LIMIT_EXCEEDED
 * for too many open tasks, or a tree that is too large; for a child also TASK_NOT_FOUND, TASK_STATE_CONFLICT,
 * TASK_CYCLE, BUDGET_EXCEEDED
 */
export async function createTask(
  engine: Engine,
  request: CreateRequest,
  admitted: Admitted,
  rights: CreateRights,
): Promise<Created> {
  // The store must not repeat a transaction whose draft carries contexts. Some contexts are in memory, and memory does
  // not roll back.
  const isRepeatable = !carriesContexts(request.draft);
  const nowMs = engine.clock.now();
  const ownContextIds = request.draft.contexts.map(() => newId(nowMs));
  const fn = (tx: WriteTx) => createTaskWithin(tx, engine, { ...request, ownContextIds }, admitted, rights);
  return rights.contextMemory.using(() => engine.store.write(fn, { isRepeatable }));
}

/** Does the work of {@link createTask} within the transaction `tx`. */
export async function createTaskWithin(
  tx: WriteTx,
  engine: Engine,
  request: CreateRequest,
  admitted: Admitted,
  rights: CreateRights,
): Promise<Created> {
  const { delegator, requestId, draft, digest } = request;
  const { agentId, agentPrincipal, capabilityId } = admitted.admission;
  // Both reads are sent together, so that they cost one round trip of the database.
  const limits = rights.dispatcher?.limitsOf(tx, agentId);
  const existing = await findKnown(tx, request, agentId, rights.contextMemory);
  await limits;
  if (existing?.replace === false) {
    const { taskId } = existing;
    if (!existing.byRequest) await insertRequest(tx, { delegator, requestId, draftDigest: digest, taskId });
    return { taskId, isNew: false };
  }
  if (existing !== undefined) await giveWay(engine, tx, existing.taskId);
  const taskId = newId(engine.clock.now());
  const above = await placeOf(engine, tx, taskId, draft, admitted.admission, rights);
  const nowMs = engine.clock.now();
  const organization = owningOrganization(rights, above);
  await takePlace(engine, tx, { delegator, organization });
  const reader = { agentId, principal: agentPrincipal };
  const { ownContextIds = [] } = request;
  const to = { taskId, delegator, organization, capabilityId, reader, ownContextIds };
  const packed = await packContexts(tx, rights.contextMemory, draft, to, rights.caller, nowMs);
  const inputId = draft.inputFromContext ? (packed.all[0]?.id ?? "") : "";
  const carried = { inputId, expireMs: firstExpiry(packed) };
  const creation = newTask(taskId, draft, { ...admitted.admission, organization }, nowMs, above, carried);
  const stream = await rights.dispatcher?.match(limits, agentId, capabilityId);
  const { record, events } = stream === undefined ? creation : dispatchedAtOnce(creation, stream, nowMs);
  await insertTask(tx, record, { draftDigest: digest, createMs: nowMs });
  engine.noteWritten(tx, record);
  await insertEvents(tx, events);
  const { input, workerToken } = draft;
  await insertInput(tx, taskId, { input, workerToken });
  await insertRequest(tx, { delegator, requestId, draftDigest: digest, taskId });
  const { delegationId } = admitted.admission;
  if (admitted.blocks.length > 0) await insertBlocks(tx, taskId, admitted.blocks);
  if (delegationId !== "") await insertDelegation(tx, taskId, delegationId, admitted.blocks.at(-1) ?? "");
  if (admitted.outputSchema !== undefined) {
    await insertOutputSchema(tx, admitted.admission.outputSchema, admitted.outputSchema);
  }
  if (packed.all.length > 0) await sendContexts(tx, rights.contextMemory, packed, to);
  await engine.notify(tx, { before: undefined, after: record, events });
  engine.announce(tx, record);
  if (stream !== undefined) {
    const contents = { workerToken, ...messageOf(events[0]), ...carriedNow(draft, packed, to.reader) };
    const work = assignment(record, contents);
    tx.afterCommit(() => stream.deliver([work]));
  }
  return { taskId, isNew: true, task: input === undefined ? record.task : { ...record.task, input }, events };
}

/**
 * Counts a new task for its delegator and its organization.
 *
 * @throws DeputeError LIMIT_EXCEEDED if the delegator or the organization has too many open tasks
 */
async function takePlace(
  { quotas }: Engine,
  tx: WriteTx,
  owners: { readonly delegator: string; readonly organization: string },
): Promise<void> {
  const max = {
    principal: quotas.maxOpenTasks("principal"),
    organization: quotas.maxOpenTasks("organization"),
  };
  const full = fullOwner(await addOpenTask(tx, owners), max);
  if (full !== undefined) throw quotas.tooManyTasks(full);
}

function carriesContexts({ contextIds, contexts }: TaskDraft): boolean {
  return contextIds.length + contexts.length > 0;
}

/** Adds the dispatch of a task to its creation, so that one transaction writes both. */
function dispatchedAtOnce(creation: Advance, { worker }: AssignmentStream, nowMs: number): Advance {
  const { record, events } = dispatched(creation.record, worker, nowMs);
  return { record, events: [...creation.events, ...events] };
}

/** Releases an external id for a new task. Cancels the earlier task with the id if it is still open. */
async function giveWay(engine: Engine, tx: WriteTx, taskId: string): Promise<void> {
  await engine.changeWithin(tx, taskId, (before, nowMs) =>
    cancelIfOpen(before, "another task was created in its place", nowMs),
  );
  await freeExternalId(tx, taskId);
}

/**
 * Returns the values that a child task inherits: its place in the tree, its organization and its share of the budget.
 * Returns undefined for a task without a parent, after it has opened the account of that task's budget.
 */
async function placeOf(
  engine: Engine,
  tx: WriteTx,
  taskId: string,
  draft: TaskDraft,
  { agentId, capabilityId }: Admission,
  { caller, treeLimits }: CreateRights,
): Promise<Above | undefined> {
  const { parentTaskId, description, spend: askedSpend } = draft;
  if (parentTaskId === "") {
    if (askedSpend !== undefined) await openSpend(tx, taskId, askedSpend, "");
    return undefined;
  }
  // `changeWithin` first applies the time limits of the parent, so that an overdue parent gets no child.
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
  return {
    place,
    organization: parent.task.organization,
    spend: await openSpend(tx, taskId, askedSpend, parentTaskId),
  };
}

/**
 * Returns the digest by which the service compares drafts. The digest ignores the order of JSON members and the token
 * budget. It also ignores context data that must not be persisted, because a reader of the digest could test guesses.
 */
export function draftDigest(draft: TaskDraft): string {
  const { budget: _budget, ...work } = draft;
  if (draft.contexts.length === 0) return messageDigest(TaskDraftSchema, work);
  const contexts = draft.contexts.map((envelope) =>
    envelope.permissions?.persist === true ? envelope : { ...envelope, data: new Uint8Array() },
  );
  return messageDigest(TaskDraftSchema, { ...work, contexts });
}
