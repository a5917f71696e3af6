import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { durationFromMs } from "@bufbuild/protobuf/wkt";
import {
  TaskAcceptedSchema,
  type TaskEvent,
  TaskStartedSchema,
} from "@depute/contracts/depute/tasks/v1/task_event_pb";
import {
  type Assignment,
  AssignmentSchema,
  LeaseSchema,
} from "@depute/contracts/depute/tasks/v1/worker_service_pb";
import { toTimestamp } from "@depute/core";
import { AnswerRoom, bytesOf } from "@depute/service";
import type { ReadTx, WriteTx } from "@depute/store";
import { type ContextMemory, ContextsAway, MissingData } from "../contexts/context-memory.ts";
import { type Carried, carriedContexts, dataOf } from "../contexts/contexts.ts";
import type { Engine } from "../engine/engine.ts";
import { type Advance, advance, withoutContext } from "../rules/advance.ts";
import { heartbeatIntervalMs, workDeadlineMs } from "../rules/limits.ts";
import type { TaskRecord } from "../rules/record.ts";
import { isTerminal } from "../rules/state-machine.ts";
import {
  acceptedBy,
  countHeld,
  countHeldByAgent,
  type QueueFilter,
  readDelegateLimits,
  waitingTasks,
} from "../store/queue-rows.ts";
import { readEvents, readInput, readTask, type TaskInput } from "../store/task-rows.ts";
import { readCheckpoint, readProvidedInputs } from "../store/work-rows.ts";

/** A worker's stream, or all polls that a worker makes under one name. */
export interface WorkerStream extends QueueFilter {
  /** Identifies a stream, or the polls of one worker. */
  readonly holder: string;
  /** The name that the worker gives the stream; absent for none. */
  readonly streamId?: string;
  /** The name that the worker gives itself. */
  readonly worker: string;
  /** Maximum number of leases that the worker may hold. */
  readonly capacity: number;
  /** Whether dispatch starts the task; absent means that the worker starts it. */
  readonly begins?: boolean;
}

/** Maximum number of tasks that one transaction dispatches, so that one worker does not delay the others. */
export const CLAIM_BATCH = 16;

/**
 * Dispatches pending tasks to a worker with free capacity: by priority, then oldest first. If several workers ask at
 * the same time, the store gives each task to only one of them.
 */
export async function claim(
  engine: Engine,
  stream: WorkerStream,
  limit: number,
  memory: ContextMemory,
): Promise<Assignment[]> {
  const atMost = Math.min(limit, CLAIM_BATCH);
  // Searches in a read transaction first. Most searches find no task, and a search must not wait for writers.
  const worth = await engine.store.read(async (tx) => {
    if ((await roomOf(tx, stream)).room <= 0) return false;
    return (await waitingTasks(tx, stream, engine.clock.now(), 1)).length > 0;
  });
  if (!worth) return [];
  const claimRoom = async (tx: WriteTx) => {
    const room = Math.min(atMost, (await roomOf(tx, stream)).room);
    return room <= 0 ? [] : claimWithin(tx, engine, stream, room, memory, new AnswerRoom());
  };
  return memory.using(() => engine.store.write(claimRoom));
}

/**
 * Does the work of {@link claim} within the transaction `tx`, for up to `room` tasks.
 *
 * @param answer the remaining bytes of a response that contains all assignments. A task that does not fit stays pending
 * for the worker's next call. Absent if each assignment has its own message.
 */
export async function claimWithin(
  tx: WriteTx,
  engine: Engine,
  stream: WorkerStream,
  room: number,
  memory: ContextMemory,
  answer?: AnswerRoom,
): Promise<Assignment[]> {
  const assignments: Assignment[] = [];
  const missingData = new MissingData();
  // Reads more tasks than `room`, because tasks whose contexts cannot be read now must not block later tasks.
  const limit = memory.isAway ? room + CLAIM_BATCH : room;
  const waiting = await waitingTasks(tx, stream, engine.clock.now(), limit);
  for (const taskId of waiting) {
    if (assignments.length === room) break;
    let contents: AssignmentContents | undefined;
    let isFull = false;
    const record = await engine.changeWithin(tx, taskId, async (before, nowMs) => {
      // A time limit may have ended the task after this transaction listed it.
      if (isTerminal(before.task.status)) return { record: before, events: [] };
      const carried = await missingData.orMissing(() => carriedNow(tx, before, memory, nowMs));
      if (carried === undefined || carried === "away") return { record: before, events: [] };
      if (await lacksContext(tx, engine, taskId, carried)) return withoutContext(before, nowMs);
      const next = dispatched(before, stream, nowMs);
      contents = await readContents(tx, next.record, carried);
      isFull =
        waiting.length > 1 &&
        answer?.takes(bytesOf(AssignmentSchema, assignment(next.record, contents))) === false;
      return isFull ? { record: before, events: [] } : next;
    });
    if (isFull) break;
    if (contents !== undefined) assignments.push(assignment(record, contents));
  }
  missingData.requireNone();
  return assignments;
}

/**
 * Returns the contexts that a task carries. Returns `away` if the memory of contexts does not answer, so the task stays
 * pending.
 */
async function carriedNow(...args: Parameters<typeof carriedBy>): Promise<Carried | "away"> {
  try {
    return await carriedBy(...args);
  } catch (error) {
    if (error instanceof ContextsAway) return "away";
    throw error;
  }
}

/** Returns whether a task has lost a context that it needs, so that no worker can do the task. */
async function lacksContext(
  tx: ReadTx,
  engine: Engine,
  taskId: string,
  { missingContextIds }: Carried,
): Promise<boolean> {
  return missingContextIds.length > 0 && !(await engine.mayLackContexts(tx, taskId));
}

/**
 * Dispatches a pending task to a worker. If `begins` is true, and the task has no worker token, also starts the task.
 */
export function dispatched(
  before: TaskRecord,
  { worker, holder, begins }: WorkerStream,
  nowMs: number,
): Advance {
  const attempt = before.task.attempt + 1;
  const value = create(TaskAcceptedSchema, { worker, attempt });
  const accepted = advance(before, { payload: { case: "accepted", value }, by: "worker", holder }, nowMs);
  // The service checks a worker token when the worker starts the task. So dispatch does not start a task with a token.
  if (begins !== true || before.task.delegationId !== "") return accepted;
  const payload = { case: "started", value: create(TaskStartedSchema, { attempt }) } as const;
  const { record, events } = advance(accepted.record, { payload, by: "worker" }, nowMs);
  return { record, events: [...accepted.events, ...events] };
}

/**
 * Returns the holder's assignments that the worker does not list as known. An earlier response with them may be lost,
 * so the worker gets the same assignments again. Without `begins`, omits tasks that the worker has started.
 */
export async function reissuedAssignments(
  engine: Engine,
  { holder, begins = false }: WorkerStream,
  knownTaskIds: ReadonlySet<string>,
  memory: ContextMemory,
): Promise<Assignment[]> {
  let lackingIds: string[] = [];
  const findLost = async (tx: ReadTx) => {
    const nowMs = engine.clock.now();
    const unknown = (await acceptedBy(tx, holder, begins, nowMs)).filter(
      (taskId) => !knownTaskIds.has(taskId),
    );
    const assignments: Assignment[] = [];
    lackingIds = [];
    const answer = new AnswerRoom();
    for (const taskId of unknown.slice(0, CLAIM_BATCH)) {
      const record = await readTask(tx, taskId);
      if (record === undefined) continue;
      const carried = await carriedBy(tx, record, memory, nowMs);
      if (await lacksContext(tx, engine, taskId, carried)) {
        lackingIds.push(taskId);
        continue;
      }
      const one = assignment(record, await readContents(tx, record, carried));
      if (!answer.takes(bytesOf(AssignmentSchema, one))) break;
      assignments.push(one);
    }
    return assignments;
  };
  const claimable = await memory.using(() => engine.store.read(findLost));
  for (const taskId of lackingIds) await engine.change(taskId, withoutContext);
  return claimable;
}

/**
 * Returns the number of further tasks that a stream may hold. The stream's capacity and its agent's limits bound this
 * number.
 */
export async function roomOf(
  tx: ReadTx,
  { holder, capacity, agentId }: WorkerStream,
): Promise<{
  readonly room: number;
  /** Whether a limit bounds all streams of the agent together. */
  readonly isBounded: boolean;
}> {
  const [held, limits] = await Promise.all([countHeld(tx, holder), readDelegateLimits(tx, agentId)]);
  const room = capacity - held;
  if (limits === undefined) return { room, isBounded: false };
  if (limits.draining) return { room: 0, isBounded: true };
  if (limits.maxHeld === 0) return { room, isBounded: false };
  return { room: Math.min(room, limits.maxHeld - (await countHeldByAgent(tx, agentId))), isBounded: true };
}

/** Returns the assignment of a leased task: the task with its lease, input, contexts, checkpoint and answers. */
export async function assignmentOf(
  tx: ReadTx,
  record: TaskRecord,
  memory: ContextMemory,
  nowMs: number,
): Promise<Assignment> {
  return assignment(record, await readContents(tx, record, await carriedBy(tx, record, memory, nowMs)));
}

const NO_CONTEXTS: Carried = { contexts: [], missingContextIds: [] };

/**
 * Returns the contexts that a task carries. A task without `contextExpireMs` has no contexts, so the function reads
 * nothing.
 */
async function carriedBy(
  tx: ReadTx,
  { task, contextExpireMs }: TaskRecord,
  memory: ContextMemory,
  nowMs: number,
): Promise<Carried> {
  return contextExpireMs === undefined ? NO_CONTEXTS : carriedContexts(tx, memory, task.id, nowMs);
}

/** The contents of an assignment besides the task. */
export type AssignmentContents = TaskInput &
  Pick<
    MessageInitShape<typeof AssignmentSchema>,
    "checkpoint" | "contexts" | "message" | "missingContextIds" | "providedInputs" | "providedMessages"
  >;

/** Reads the parts of an assignment that the task's record does not contain. */
async function readContents(
  tx: ReadTx,
  { task, epoch }: TaskRecord,
  carried: Carried,
): Promise<AssignmentContents> {
  const checkpoint = task.checkpointAvailable ? await readCheckpoint(tx, task.id) : undefined;
  const { input, workerToken } = await readInput(tx, task.id);
  const source = carried.contexts.find(({ id }) => id === task.inputContextId)?.envelope;
  const [created] = task.isConversation ? await readEvents(tx, task.id, 0n, 1) : [];
  return {
    input: source === undefined ? input : dataOf(source),
    workerToken,
    ...(checkpoint && { checkpoint }),
    ...carried,
    ...messageOf(created),
    // At its first dispatch, a task has no answers, so this code reads none.
    ...(epoch > 1 && (await readProvidedInputs(tx, task.id))),
  };
}

/**
 * Returns the A2A message in a task's first event, as a member of an assignment. Returns an empty object for an event
 * without a message.
 */
export function messageOf(created: TaskEvent | undefined): Pick<AssignmentContents, "message"> {
  const message = created?.payload.case === "created" ? created.payload.value.message : undefined;
  return message === undefined ? {} : { message };
}

/** Builds the assignment message that a worker receives. */
export function assignment(
  { task, epoch, hold }: TaskRecord,
  { input, workerToken, ...contents }: AssignmentContents,
): Assignment {
  return create(AssignmentSchema, {
    lease: create(LeaseSchema, { taskId: task.id, epoch: BigInt(epoch) }),
    task: input === undefined ? task : { ...task, input },
    heartbeatInterval: durationFromMs(heartbeatIntervalMs(task)),
    ...(hold && {
      leaseExpireTime: toTimestamp(hold.leaseExpireMs),
      attemptExpireTime: toTimestamp(workDeadlineMs(task, hold)),
    }),
    workerToken,
    ...contents,
  });
}
