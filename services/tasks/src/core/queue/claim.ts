import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { durationFromMs } from "@bufbuild/protobuf/wkt";
import { TaskAcceptedSchema, TaskStartedSchema } from "@depute/contracts/depute/tasks/v1/task_event_pb";
import {
  type Assignment,
  AssignmentSchema,
  LeaseSchema,
} from "@depute/contracts/depute/tasks/v1/worker_service_pb";
import { toTimestamp } from "@depute/core";
import { AnswerRoom, bytesOf } from "@depute/service";
import type { ReadTx, WriteTx } from "@depute/store";
import type { ContextMemory } from "../contexts/context-memory.ts";
import { type Carried, carriedContexts, dataOf } from "../contexts/contexts.ts";
import type { Engine } from "../engine/engine.ts";
import { type Advance, advance, withoutContext } from "../rules/advance.ts";
import { heartbeatIntervalMs, workDeadlineMs } from "../rules/limits.ts";
import type { TaskRecord } from "../rules/record.ts";
import { isTerminal } from "../rules/state-machine.ts";
import { readInput, type TaskInput } from "../store/input-rows.ts";
import {
  acceptedBy,
  countHeld,
  countHeldByAgent,
  type QueueFilter,
  readDelegateLimits,
  waitingTasks,
} from "../store/queue-rows.ts";
import { readTask } from "../store/task-rows.ts";
import { readCheckpoint, readProvidedInputs } from "../store/work-rows.ts";

/** A worker's stream, or its polls under one name. */
export interface WorkerStream extends QueueFilter {
  /** Tells streams apart, each by an id of its own, and the polls of one worker from others'. */
  readonly holder: string;
  /** The name that the worker gives the stream; absent for none. */
  readonly streamId?: string;
  /** The name that the worker gives itself. */
  readonly worker: string;
  /** Leases that it may hold at once. */
  readonly capacity: number;
  /** Whether the work begins as it is handed out; absent means that the worker begins it. */
  readonly begins?: boolean;
}

/** Tasks claimed in one transaction at most, so that one worker does not hold up the others. */
export const CLAIM_BATCH = 16;

/**
 * Hands waiting tasks to a worker, by priority and then oldest first, as far as it has room for them. The store decides between workers that
 * ask at the same time: a task is given to one of them.
 */
export async function claim(
  engine: Engine,
  stream: WorkerStream,
  limit: number,
  memory: ContextMemory,
): Promise<Assignment[]> {
  const atMost = Math.min(limit, CLAIM_BATCH);
  // Most looks find nothing, and those must not queue with the writers.
  const worth = await engine.store.read(async (tx) => {
    if ((await roomOf(tx, stream)).room <= 0) return false;
    return (await waitingTasks(tx, stream, engine.clock.now(), 1)).length > 0;
  });
  if (!worth) return [];
  return engine.store.write(async (tx) => {
    const room = Math.min(atMost, (await roomOf(tx, stream)).room);
    return room <= 0 ? [] : claimWithin(tx, engine, stream, room, memory, new AnswerRoom());
  });
}

/** Bytes that an assignment gains when the task is handed out: a hold, its times, a worker's name. */
const HANDED_OUT_BYTES = 512;

/**
 * As {@link claim}, within a transaction, for a worker that has room for so many.
 *
 * @param answer room of the one answer that carries the assignments. A task that does not fit waits on, without a lease, for
 *   the worker's next call. Absent where each assignment is a message of its own.
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
  const waiting = await waitingTasks(tx, stream, engine.clock.now(), room);
  for (const taskId of waiting) {
    const carried = await carriedContexts(tx, memory, taskId, engine.clock.now());
    const isLacking = await lacksContext(tx, engine, taskId, carried);
    const mayOverflow = answer !== undefined && waiting.length > 1 && !isLacking;
    if (mayOverflow && !answer.takes(await assignedBytes(tx, taskId, carried))) break;
    const record = await engine.changeWithin(tx, taskId, (before, nowMs) => {
      // A time limit may have passed since the look.
      if (isLacking || isTerminal(before.task.status)) return withoutContext(before, nowMs);
      return given(before, stream, nowMs);
    });
    if (!isTerminal(record.task.status)) assignments.push(await assigned(tx, record, carried));
  }
  return assignments;
}

/** Bytes of the assignment that a waiting task would become. */
async function assignedBytes(tx: ReadTx, taskId: string, carried: Carried): Promise<number> {
  const record = await readTask(tx, taskId);
  if (record === undefined) return 0;
  const next = { ...record, epoch: record.epoch + 1 };
  return bytesOf(AssignmentSchema, await assigned(tx, next, carried)) + HANDED_OUT_BYTES;
}

/** Whether a task lacks a context that it carries and needs, so that no worker can do it. */
async function lacksContext(
  tx: ReadTx,
  engine: Engine,
  taskId: string,
  { missingContextIds }: Carried,
): Promise<boolean> {
  return missingContextIds.length > 0 && !(await engine.mayLackContexts(tx, taskId));
}

/** A task that waited, in the hands of a worker. */
export function given(before: TaskRecord, { worker, holder, begins }: WorkerStream, nowMs: number): Advance {
  const attempt = before.task.attempt + 1;
  const value = create(TaskAcceptedSchema, { worker, attempt });
  const accepted = advance(before, { payload: { case: "accepted", value }, by: "worker", holder }, nowMs);
  // Whether its token still holds is asked of others, when the worker begins.
  if (begins !== true || before.task.delegationId !== "") return accepted;
  const payload = { case: "started", value: create(TaskStartedSchema, { attempt }) } as const;
  const { record, events } = advance(accepted.record, { payload, by: "worker" }, nowMs);
  return { record, events: [...accepted.events, ...events] };
}

/** The assignments of a holder that it does not know of, and has not begun itself, as they were handed out. */
export async function heldAnew(
  engine: Engine,
  { holder, begins = false }: WorkerStream,
  known: ReadonlySet<string>,
  memory: ContextMemory,
): Promise<Assignment[]> {
  const lacking: string[] = [];
  const held = await engine.store.read(async (tx) => {
    const nowMs = engine.clock.now();
    const unknown = (await acceptedBy(tx, holder, begins, nowMs)).filter((taskId) => !known.has(taskId));
    const assignments: Assignment[] = [];
    const answer = new AnswerRoom();
    for (const taskId of unknown.slice(0, CLAIM_BATCH)) {
      const record = await readTask(tx, taskId);
      if (record === undefined) continue;
      const carried = await carriedContexts(tx, memory, taskId, nowMs);
      if (await lacksContext(tx, engine, taskId, carried)) {
        lacking.push(taskId);
        continue;
      }
      const one = await assigned(tx, record, carried);
      if (!answer.takes(bytesOf(AssignmentSchema, one))) break;
      assignments.push(one);
    }
    return assignments;
  });
  for (const taskId of lacking) await engine.change(taskId, withoutContext);
  return held;
}

/** How many tasks more a stream may hold, by its own capacity and by its agent's limits. */
export async function roomOf(
  tx: ReadTx,
  { holder, capacity, agentId }: WorkerStream,
): Promise<{ readonly room: number /** Whether the agent has limits. */; readonly isBounded: boolean }> {
  const room = capacity - (await countHeld(tx, holder));
  const limits = await readDelegateLimits(tx, agentId);
  if (limits === undefined) return { room, isBounded: false };
  if (limits.draining) return { room: 0, isBounded: true };
  if (limits.maxHeld === 0) return { room, isBounded: false };
  return { room: Math.min(room, limits.maxHeld - (await countHeldByAgent(tx, agentId))), isBounded: true };
}

/** A task that a worker holds, with what it needs to know. */
export async function assignmentOf(
  tx: ReadTx,
  record: TaskRecord,
  memory: ContextMemory,
  nowMs: number,
): Promise<Assignment> {
  return assigned(tx, record, await carriedContexts(tx, memory, record.task.id, nowMs));
}

async function assigned(tx: ReadTx, record: TaskRecord, carried: Carried): Promise<Assignment> {
  const { task, epoch } = record;
  const checkpoint = task.checkpointAvailable ? await readCheckpoint(tx, task.id) : undefined;
  const { input, workerToken } = await readInput(tx, task.id);
  const source = carried.contexts.find(({ id }) => id === task.inputContextId)?.envelope;
  return assignment(
    record,
    { input: source === undefined ? input : dataOf(source), workerToken },
    {
      ...(checkpoint && { checkpoint }),
      ...carried,
      // A first attempt was asked nothing.
      ...(epoch > 1 && { providedInputs: await readProvidedInputs(tx, task.id) }),
    },
  );
}

/** What goes along with work beside its input. */
type Luggage = Pick<
  MessageInitShape<typeof AssignmentSchema>,
  "checkpoint" | "contexts" | "missingContextIds" | "providedInputs"
>;

/** An assignment of what is at hand. */
export function assignment(
  { task, epoch, hold }: TaskRecord,
  { input, workerToken }: TaskInput,
  luggage: Luggage = {},
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
    ...luggage,
  });
}
