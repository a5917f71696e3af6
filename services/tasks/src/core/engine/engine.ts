import type { Bus } from "@depute/bus";
import type { TaskEvent } from "@depute/contracts/depute/tasks/v1/task_event_pb";
import { type Task, TaskStatus } from "@depute/contracts/depute/tasks/v1/task_pb";
import type { Clock, Timers } from "@depute/core";
import type { ReadTx, Store, WriteOptions, WriteTx } from "@depute/store";
import type { MissingContextRule, TaskChange, TaskObserver } from "../hooks.ts";
import { type Advance, advanceByTime } from "../rules/advance.ts";
import { cancelIfOpen } from "../rules/cancel.ts";
import { nextDeadline } from "../rules/limits.ts";
import { hasOnlyBegun, type TaskRecord } from "../rules/record.ts";
import type { Random } from "../rules/retry.ts";
import { isTerminal, statusName } from "../rules/state-machine.ts";
import { taskNotFound } from "../rules/visibility.ts";
import { deleteBlocks } from "../store/block-rows.ts";
import { endDelegation } from "../store/delegation-rows.ts";
import { insertEvents, readEvents } from "../store/event-rows.ts";
import { readInput } from "../store/input-rows.ts";
import { deleteReports } from "../store/request-rows.ts";
import {
  dueTasks,
  earliestDeadline,
  readTask,
  updateLease,
  updateQueued,
  updateTask,
} from "../store/task-rows.ts";
import { openChildren } from "../store/tree-rows.ts";
import { deleteWorkState, readHeldResult } from "../store/work-rows.ts";
import { RecordCache } from "./record-cache.ts";
import { settleAttempt, settleTask } from "./spend.ts";
import { TaskEnds } from "./task-ends.ts";
import { ASSIGNMENT_TOPIC, TASK_TOPIC } from "./topics.ts";

/** Tasks whose backoff is remembered at once; each costs a timer. */
const MAX_LATER = 10_000;
/** Open tasks whose records are held in memory; each costs a few kilobytes, with a long description up to 70. */
const MAX_RECORDS = 512;

export interface EngineOptions {
  readonly store: Store;
  readonly bus: Bus;
  readonly clock: Clock;
  readonly timers: Timers;
  /** Chance, for the jitter of backoffs. */
  readonly random: Random;
}

/** What a change makes of a task; it may await calls of `tx` and nothing else. */
export type Decide = (record: TaskRecord, nowMs: number, tx: WriteTx) => Promise<Advance> | Advance;

/** Who hands work out is told here at once, so that handing out joins the commit of what there is to hand out. */
export interface WorkListener {
  /** A task of the agent's waits and may be taken. */
  onWaiting(agentId: string): void;
  /** A worker of the agent's let a task go. */
  onRoom(agentId: string): void;
  /** The agent's workers may hold more, or less. */
  onLimits(agentId: string): void;
}

/** Reads tasks, and changes them: event and state in one transaction, wake-ups after it. */
export class Engine {
  readonly store: Store;
  readonly clock: Clock;
  readonly random: Random;
  /** Who waits for a task's end. */
  readonly ends = new TaskEnds();
  readonly #bus: Bus;
  readonly #timers: Timers;
  readonly #later = new Set<() => void>();
  readonly #observers: TaskObserver[] = [];
  readonly #records = new RecordCache(MAX_RECORDS);
  #work: WorkListener = { onWaiting() {}, onRoom() {}, onLimits() {} };
  #allowsMissingContexts: MissingContextRule = async () => false;
  #onDeadline: (atMs: number) => void = () => {};
  #onDelegationEnd: () => void = () => {};

  constructor({ store, bus, clock, timers, random }: EngineOptions) {
    this.store = store;
    this.clock = clock;
    this.random = random;
    this.#bus = bus;
    this.#timers = timers;
  }

  /** Forgets whom to wake later. */
  close(): void {
    for (const cancel of this.#later) cancel();
    this.#later.clear();
  }

  /** Tells the listener about each deadline that a change set. */
  onDeadline(listener: (atMs: number) => void): void {
    this.#onDeadline = listener;
  }

  /** Tells the listener when there is the end of a delegation to be told. */
  onDelegationEnd(listener: () => void): void {
    this.#onDelegationEnd = listener;
  }

  /** Tells the listener of tasks that wait and of room for them. */
  onWork(listener: WorkListener): void {
    this.#work = listener;
  }

  /** Has the observer told of every change of every task from now on, in the order in which observers were added. */
  observe(observer: TaskObserver): void {
    this.#observers.push(observer);
  }

  /** Names the tasks that may be dispatched although a context that they carry is gone; none without a rule. */
  allowMissingContexts(rule: MissingContextRule): void {
    this.#allowsMissingContexts = rule;
  }

  /** Whether a task may be dispatched although a context that it carries is gone. */
  mayLackContexts(tx: ReadTx, taskId: string): Promise<boolean> {
    return this.#allowsMissingContexts(tx, taskId);
  }

  /** Tells the observers of a change that this transaction has written. */
  async tell(tx: WriteTx, change: TaskChange): Promise<void> {
    for (const observer of this.#observers) await observer(tx, change);
  }

  /** A task's record, as it is stored. */
  async find(taskId: string): Promise<TaskRecord | undefined> {
    return this.store.read((tx) => readTask(tx, taskId));
  }

  /** A task's record as it is about to be stored: for looks that a change then repeats. */
  async peek(taskId: string): Promise<TaskRecord | undefined> {
    return this.#records.get(taskId) ?? (await this.find(taskId));
  }

  /**
   * A task's record if it has ended; undefined for one that has not. Whoever listens to `ends` before asking this misses
   * no end.
   */
  async ended(taskId: string): Promise<TaskRecord | undefined> {
    const open = this.#records.get(taskId);
    const record = open ?? (await this.find(taskId));
    return record !== undefined && isTerminal(record.task.status) ? record : undefined;
  }

  /** Up to `limit` events of a task after a sequence, in order. */
  async events(taskId: string, after: bigint, limit: number): Promise<TaskEvent[]> {
    return this.store.read((tx) => readEvents(tx, taskId, after, limit));
  }

  /** Ids of up to `limit` tasks of which a time limit has passed. */
  async due(limit: number): Promise<string[]> {
    const nowMs = this.clock.now();
    return this.store.read((tx) => dueTasks(tx, nowMs, limit));
  }

  /** The earliest deadline of all tasks, epoch milliseconds. */
  async earliestDeadline(): Promise<number | undefined> {
    return this.store.read(earliestDeadline);
  }

  /**
   * Changes a task. The time limits that have passed are applied first, so `decide` sees what is true at this moment.
   *
   * @param options what `decide` does decides whether it may be run again; everything else here may
   * @throws DeputeError TASK_NOT_FOUND, and what `decide` throws; nothing is stored then
   */
  async change(taskId: string, decide: Decide, options?: WriteOptions): Promise<TaskRecord> {
    return this.store.write((tx) => this.changeWithin(tx, taskId, decide), options);
  }

  /** As `change`, within a transaction. */
  async changeWithin(tx: WriteTx, taskId: string, decide: Decide): Promise<TaskRecord> {
    const nowMs = this.clock.now();
    const before = await this.#read(tx, taskId);
    if (before === undefined) throw taskNotFound(taskId);
    const timed = advanceByTime(before, { nowMs, random: this.random });
    const { record, events } = await decide(timed.record, nowMs, tx);
    await this.#put(tx, before, { record, events: [...timed.events, ...events] });
    return record;
  }

  /**
   * Lets workers take a task that waits from a time on, and not before; one that does not wait is left as it is.
   *
   * @param atMs epoch milliseconds
   */
  async availableFrom(tx: WriteTx, taskId: string, atMs: number): Promise<void> {
    const record = await this.#read(tx, taskId);
    if (record?.task.status !== TaskStatus.PENDING) return;
    const after = { ...record, queuedMs: atMs };
    await updateQueued(tx, after);
    this.noteWritten(tx, after);
    this.announce(tx, after);
  }

  /** Applies the time limits that have passed, of up to as many tasks as are named, in one transaction. */
  async applyTime(taskIds: readonly string[]): Promise<void> {
    await this.store.write(async (tx) => {
      for (const taskId of taskIds) {
        await this.changeWithin(tx, taskId, (record) => ({ record, events: [] }));
      }
    });
  }

  /** Wakes who waits for a key of a topic. */
  wake(topic: string, key: string): void {
    this.#bus.publish(topic, key);
  }

  /** To be called in the transaction that changes how much an agent's workers may hold. */
  limitsChanged(tx: WriteTx, agentId: string): void {
    tx.afterRun(() => this.#work.onLimits(agentId));
    tx.afterCommit(() => this.#bus.publish(ASSIGNMENT_TOPIC, agentId));
  }

  /** To be called when a transaction has written a task, before anything else looks at it. */
  noteWritten(tx: WriteTx, record: TaskRecord): void {
    this.#records.put(tx, record);
  }

  /** To be called once in the transaction that stores new events: wakes who waits for them. */
  announce(tx: WriteTx, record: TaskRecord): void {
    const deadline = nextDeadline(record);
    if (record.hold === undefined) tx.afterRun(() => this.#tellOfWork(record));
    tx.afterCommit(() => {
      this.#bus.publish(TASK_TOPIC, record.task.id);
      if (isTerminal(record.task.status)) this.ends.tell(record);
      // A task that waits is work for somebody, and one that a worker let go leaves room for the next.
      if (record.hold === undefined) this.#bus.publish(ASSIGNMENT_TOPIC, record.task.agentId);
      if (record.task.status === TaskStatus.PENDING) this.#wakeLater(record);
      if (deadline !== undefined) this.#onDeadline(deadline.atMs);
    });
  }

  #tellOfWork({ task, queuedMs, epoch }: TaskRecord): void {
    const mayBeTaken = task.status === TaskStatus.PENDING && queuedMs <= this.clock.now();
    if (mayBeTaken) this.#work.onWaiting(task.agentId);
    // A new task was nobody's before.
    if (epoch > 0) this.#work.onRoom(task.agentId);
  }

  async #read(tx: WriteTx, taskId: string): Promise<TaskRecord | undefined> {
    return this.#records.get(taskId) ?? (await readTask(tx, taskId));
  }

  /** Nothing goes on below a task that has ended: nobody waits for it. */
  async #endChildren(tx: WriteTx, { task }: TaskRecord): Promise<void> {
    const reason = `the task that it is a part of is ${statusName(task.status)}`;
    for (const childId of await openChildren(tx, task.id)) {
      await this.changeWithin(tx, childId, (child, nowMs) => cancelIfOpen(child, reason, nowMs, "parent"));
    }
  }

  /** Wakes workers for a task that backs off. What is not kept for lack of room waits for their next look. */
  #wakeLater({ task, queuedMs }: TaskRecord): void {
    const waitMs = queuedMs - this.clock.now();
    if (waitMs <= 0 || this.#later.size >= MAX_LATER) return;
    const cancel = this.#timers.after(waitMs, () => {
      this.#later.delete(cancel);
      this.#work.onWaiting(task.agentId);
      this.#bus.publish(ASSIGNMENT_TOPIC, task.agentId);
    });
    this.#later.add(cancel);
  }

  async #put(tx: WriteTx, before: TaskRecord, { record, events }: Advance): Promise<void> {
    if (events.length === 0) {
      if (record === before) return;
      await updateLease(tx, record);
      this.noteWritten(tx, record);
      return;
    }
    if (!(await updateTask(tx, before, record))) {
      throw new Error(`task ${record.task.id} changed within the transaction that changes it`);
    }
    this.noteWritten(tx, record);
    await insertEvents(tx, events);
    const isLetGo = before.hold !== undefined && record.hold === undefined;
    if (isLetGo && !hasOnlyBegun(before)) await deleteReports(tx, record.task.id);
    const hasEnded = isTerminal(record.task.status);
    if (hasEnded) {
      if (record.task.delegationId !== "") {
        await deleteBlocks(tx, record.task.id);
        if (await endDelegation(tx, record.task)) tx.afterCommit(() => this.#onDelegationEnd());
      }
      await deleteWorkState(tx, before);
      await this.#endChildren(tx, record);
    }
    if (record.task.spend !== undefined) {
      // A task that ends without a worker may have used something as well: its delegate attested it.
      if (isLetGo || hasEnded) await settleAttempt(tx, record.task);
      if (hasEnded) await settleTask(tx, record.task);
    }
    await this.tell(tx, { before, after: record, events });
    this.announce(tx, record);
  }
}

/**
 * The task with its input and, where it completed, its output.
 *
 * @param seesHeld whether the output is shown that waits for the overseer
 */
export async function wholeTask(tx: ReadTx, { task }: TaskRecord, seesHeld = false): Promise<Task> {
  const { input } = await readInput(tx, task.id);
  const whole: Task = { ...task };
  if (input !== undefined) whole.input = input;
  const result = await resultOf(tx, task, seesHeld);
  if (result?.output !== undefined) whole.output = result.output;
  if (result?.usage !== undefined) whole.usage = result.usage;
  if (result?.verification !== undefined) whole.verification = result.verification;
  return whole;
}

async function resultOf(tx: ReadTx, { id, status, lastSequence }: Task, seesHeld: boolean) {
  if (status === TaskStatus.IN_REVIEW) return seesHeld ? readHeldResult(tx, id) : undefined;
  if (status !== TaskStatus.COMPLETED) return undefined;
  // The output stands in the log; the terminal event is the last.
  const [last] = await readEvents(tx, id, lastSequence - 1n, 1);
  return last?.payload.case === "completed" ? last.payload.value : undefined;
}
